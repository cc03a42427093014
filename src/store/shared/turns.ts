/**
 * Jobs that want the same host take turns: a host that is free belongs for this long to the job that had it longest ago, and
 * then to whoever asks. So none waits for a job that cannot use its turn.
 */
export const TURN_MS = 1_000;
/** A less urgent job waits for so long before it is its turn: longer than a crawl of many hosts leaves each of them alone. */
export const OVERTAKEN_MS = 3_000;

interface TurnTerms {
  /** What is due by then counts. */
  before: string;
  /** Of `other.job_id`. */
  isAtWork: string;
  /** Of `other.job_id`: less urgent, so that it has its turn only when it has waited for long. */
  isOvertaken: string;
  /** Now, less a turn. */
  turnAgo: string;
}

/** SQL that is true when another job that is at work has waited longer for the host of `queues`. */
export const isOthersTurn = ({ before, isAtWork, isOvertaken, turnAgo }: TurnTerms) => `EXISTS (
  SELECT 1 FROM queues AS other
  WHERE other.host_id = queues.host_id AND other.job_id <> queues.job_id AND other.ready > 0 AND other.next_at <= ${before}
    AND other.served_at < queues.served_at AND ${isAtWork} AND (other.served_at <= ${turnAgo} - ${OVERTAKEN_MS - TURN_MS} OR NOT ${isOvertaken}))`;
