/** What is used of BullMQ and its client of Redis. The build has it in few files (scripts/build/bundle-packages.ts). */
export { type Job, Queue, Worker } from 'bullmq';
export { Redis, type RedisOptions, ReplyError } from 'ioredis';

const LOADS = 1_000;

/**
 * ioredis has a class that extends String. V8 then keeps the methods of all strings in a dictionary until they are looked up
 * through a String object, and code that it optimised calls a builtin for each: reading the characters of a URL took five
 * times as long, 3 µs of the coordinator for each page of a crawl. V8 looks only when the function has run some times.
 */
function makeStringMethodsFast(): void {
  const text = Object('');
  for (let load = 0; load < LOADS; load++) text.charCodeAt(0);
}

makeStringMethodsFast();
