import { defineJob, openSeine } from 'seine';

/** Seine inside a program: run a job, read its records, ask how it went. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';

const seine = await openSeine();
try {
  const run = await seine.run(
    defineJob({
      name: 'help',
      sources: new URL('help', shop).href,
      follow: [{ match: '/help/*' }],
      routes: [{ name: 'page', select: { title: 'h1', text: 'main p' } }],
      allowPrivate: true,
    }),
  );
  const { state, done, dead, records } = await run.done;
  console.log(`${run.id} is ${state}: ${done} done, ${dead} dead, ${records} records`);

  for await (const { url, data } of seine.records('help')) console.log(new URL(url).pathname, data.title);
  for await (const task of seine.tasks('help')) {
    if (task.state === 'dead') console.log(new URL(task.url).pathname, 'is dead:', task.failureCode);
  }
} finally {
  await seine.close();
}
