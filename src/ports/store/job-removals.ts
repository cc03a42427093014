/** A job that is being removed: nothing else finds it any more. */
export interface RemovedJob {
  id: number;
  name: string;
  run: number;
}

/** Jobs that are deleted, in steps, so that nothing waits for a large one. A step that is done again does no harm. */
export interface JobRemovals {
  /** From now on the job is not found. False when it runs, or is not there. */
  mark(jobId: number, now: number): Promise<boolean>;
  /** The oldest first. */
  list(limit: number): Promise<RemovedJob[]>;
  /** Names of blobs that may be of several jobs: media and pictures of pages. In the order of attempts, from `after` on. */
  sharedBlobs(
    jobId: number,
    options: { after: number; limit: number },
  ): Promise<{ keys: string[]; after: number; isEnd: boolean }>;
  /** Those of these blobs that other jobs refer to, of the attempts from `after` on. */
  blobsOfOthers(
    jobId: number,
    keys: ReadonlySet<string>,
    options: { after: number; limit: number },
  ): Promise<{ keys: string[]; after: number; isEnd: boolean }>;
  /** Deletes rows of the job, those numbered from `after` on in all tables; the job itself with the last ones. */
  removeRows(
    jobId: number,
    options: { after: number; limit: number },
  ): Promise<{ after: number; isEnd: boolean }>;
}
