import { expect, test } from 'vitest';
import { runTrial } from './forecast-trials.ts';

/** A few of the trials of `npm run forecast-check`, which measures how good forecasts are. */
test('a list and a crawl take about as long, and cost as much, as a sample foretold', async () => {
  const trials = [await runTrial(136, 60), await runTrial(137, 60)];
  expect(trials.map(({ kind }) => kind).sort()).toEqual(['crawl', 'list']);
  for (const { forecast, seconds, requests, dollars } of trials) {
    expect(forecast.seconds.p50 / seconds).toBeGreaterThan(0.5);
    expect(forecast.seconds.p50 / seconds).toBeLessThan(2);
    expect(forecast.requests / requests).toBeGreaterThan(0.6);
    expect(forecast.requests / requests).toBeLessThan(1.6);
    expect(forecast.dollars.p50 / dollars).toBeGreaterThan(0.6);
    expect(forecast.dollars.p90).toBeGreaterThan(dollars * 0.8);
  }
});
