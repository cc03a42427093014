import { expect, test } from 'vitest';
import { splitReport } from '../../../src/core/batch/report.ts';
import { LIMITS } from '../../../src/core/limits.ts';
import { numberPiece, packReport, unpackPiece } from '../../../src/transport/packed-report.ts';
import { batchOf } from '../../support/coordinator/progress-reports.ts';
import { reportOn } from '../../support/fleet/report-examples.ts';

const REPORT = reportOn(batchOf(7, ['a.example'], 5));

test('a packed report says the same, with the number that it is sent with', () => {
  const { batchId, outcomes, pieces } = packReport(REPORT);
  expect([batchId, outcomes, pieces.length]).toEqual([7, 5, 1]);
  expect(unpackPiece(numberPiece(pieces[0]!, 3))).toEqual({ ...REPORT, part: 3 });
});

test('a huge one comes in pieces, and owns their memory, so that a thread can give it away', () => {
  const [outcome] = REPORT.outcomes;
  if (outcome?.kind !== 'fetched') throw new Error('the first outcome of the example is a page');
  const links = Array.from({ length: LIMITS.partItemsMax }, () => outcome.links[0]!);
  const huge = {
    ...REPORT,
    outcomes: REPORT.outcomes.map((each) => ({ ...outcome, taskId: each.taskId, links })),
  };
  const { outcomes, pieces } = packReport(huge);
  expect([outcomes, pieces.length]).toEqual([5, 5]);
  expect(pieces.every(({ buffer, length }) => buffer.byteLength === length)).toBe(true);
  const parts = pieces.map((piece, index) => unpackPiece(numberPiece(piece, index)));
  expect(parts).toEqual(JSON.parse(JSON.stringify(splitReport(huge, LIMITS.partItemsMax))));
});

test('what is no piece of a report is no report', () => {
  expect(() => unpackPiece(Buffer.alloc(3))).toThrow();
  expect(() => unpackPiece(Buffer.from('0000{"version":3}'))).toThrow();
});
