import type { Batch, Report } from '../../src/core/batch/batch.ts';
import type { Delivery, Dispatcher } from '../../src/ports/dispatcher.ts';
import { Lateness } from '../../src/worker/batch/pace.ts';
import { processBatch, type WorkerTools } from '../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../src/worker/compile-job.ts';
import type { MemoryBlobs } from './memory-blobs.ts';
import type { Sites } from './sites.ts';
import { Process, type World } from './virtual-time.ts';

/** How messages fare on their way to the coordinator: shares of all. */
interface MessageFaults {
  lost: number;
  doubled: number;
  late: number;
}

interface FleetOptions {
  workers: number;
  slotsPerWorker: number;
  /** Whether workers are threads of the coordinator and die with it. */
  areThreads: boolean;
  faults: MessageFaults;
}

interface OpenBatch {
  batch: Batch;
  worker: SimWorker;
  coordinator: Process;
  drain: AbortController;
  answer(delivery: Delivery): void;
}

class SimWorker {
  readonly process: Process;
  readonly tools: WorkerTools;
  readonly open = new Set<OpenBatch>();

  constructor(process: Process, sites: Pick<Sites, 'fetch'>, blobs: MemoryBlobs) {
    this.process = process;
    this.tools = {
      name: process.name,
      fetcher: { fetch: (request) => sites.fetch(request, process), close: async () => {} },
      blobs,
      clock: process.clock,
      random: process.world.random,
      lateness: new Lateness(),
      jobs: new JobCache(async () => new Map()),
    };
  }
}

/** Workers that are started for suspects at the same time. */
const SUSPECT_SLOTS = 2;
/** Slower than anything that the coordinator waits for. */
const LATE_MS = [500, 5_000, 40_000, 200_000];

/** Workers, and the way to them and back. The workers' own code is the real one. */
export class Fleet {
  readonly #world: World;
  readonly #options: FleetOptions;
  readonly #sites: Pick<Sites, 'fetch'>;
  readonly #blobs: MemoryBlobs;
  #workers: SimWorker[] = [];
  /** With those that were started for a batch of suspects. */
  readonly #all = new Set<SimWorker>();
  #started = 0;
  #clockOffset = 0;
  faults = 0;
  /** Batches that were lost because a page killed their worker. */
  readonly poisoned = new Set<number>();
  trace: (text: string) => void = () => {};

  constructor(world: World, options: FleetOptions, sites: Pick<Sites, 'fetch'>, blobs: MemoryBlobs) {
    this.#world = world;
    this.#options = options;
    this.#sites = sites;
    this.#blobs = blobs;
  }

  get slots(): number {
    return this.#options.workers * this.#options.slotsPerWorker;
  }

  get processes(): Process[] {
    return this.#workers.map(({ process }) => process);
  }

  #startOne(): SimWorker {
    const process = new Process(this.#world, `worker-${++this.#started}`, this.#clockOffset);
    const worker = new SimWorker(process, this.#sites, this.#blobs);
    this.#all.add(worker);
    return worker;
  }

  #idlest(): SimWorker {
    return this.#workers.reduce((best, each) => (each.open.size < best.open.size ? each : best));
  }

  #fill(coordinator?: Process): void {
    if (coordinator) this.#clockOffset = coordinator.clockOffset;
    while (this.#workers.length < this.#options.workers) this.#workers.push(this.#startOne());
  }

  dispatcherFor(coordinator: Process): Dispatcher {
    const { workers, slotsPerWorker } = this.#options;
    const own = new Set<OpenBatch>();
    this.#fill(coordinator);
    return {
      workers,
      slots: workers * slotsPerWorker,
      suspectSlots: SUSPECT_SLOTS,
      dispatch: (batch, onPart) => {
        const { promise, resolve } = Promise.withResolvers<Delivery>();
        this.#world.after(this.#world.random.between(0, 10), null, () =>
          this.#start(batch, coordinator, onPart, resolve, own),
        );
        return promise;
      },
      drain: async () => {
        for (const open of own) open.drain.abort();
      },
      recall: (batchId) => {
        for (const open of own) if (open.batch.id === batchId) open.drain.abort();
      },
      close: async () => {},
    };
  }

  #start(
    batch: Batch,
    coordinator: Process,
    onPart: (report: Report) => void,
    answer: (delivery: Delivery) => void,
    own: Set<OpenBatch>,
  ): void {
    // The machines that it was sent to are gone, and so is whoever sent it.
    if (this.#workers.length === 0) return;
    const worker = batch.suspects ? this.#startOne() : this.#idlest();
    const drain = new AbortController();
    const open: OpenBatch = { batch, worker, coordinator, drain, answer };
    worker.open.add(open);
    own.add(open);
    const options = {
      drain: drain.signal,
      onPart: (report: Report) => this.#send(open, report, onPart),
    };
    // On the worker's own time: a frozen one takes the batch when it goes on.
    this.#world.after(0, worker.process, () => {
      this.trace(
        `${worker.process.name} takes batch ${batch.id} (${batch.tasks.map(({ id }) => id).join(' ')})`,
      );
      void processBatch(batch, worker.tools, options).then((report) => {
        worker.open.delete(open);
        own.delete(open);
        if (batch.suspects) this.#all.delete(worker);
        this.#send(open, report, (again) => {
          answer({ kind: 'report', report: again });
          if (again !== report) onPart(again);
        });
      });
    });
  }

  /** A report on its way: it may be lost, doubled, late, and overtaken by others. */
  #send({ coordinator }: OpenBatch, report: Report, receive: (report: Report) => void): void {
    const { random } = this.#world;
    const { lost, doubled, late } = this.#options.faults;
    const about = `report ${report.part}${report.final ? ' (last)' : ''} of batch ${report.batchId}`;
    if (random.chance(lost)) {
      this.faults++;
      this.trace(`${about} is lost`);
      return;
    }
    let ms = random.between(0, 20);
    if (random.chance(late)) {
      this.faults++;
      ms += random.pick(LATE_MS);
      this.trace(`${about} is ${ms} ms late`);
    }
    this.#world.after(ms, coordinator, () => receive(report));
    if (!random.chance(doubled)) return;
    this.faults++;
    this.trace(`${about} comes twice`);
    this.#world.after(ms + random.between(0, 3_000), coordinator, () => receive({ ...report }));
  }

  /** The process is gone; its dispatcher notices after a while, and another takes its place. */
  killWorker(process: Process, isInnocent: boolean): void {
    const worker = [...this.#all].find((each) => each.process === process);
    if (!worker) return;
    this.#all.delete(worker);
    process.kill();
    this.#workers = this.#workers.filter((each) => each !== worker);
    const { random } = this.#world;
    const noticedMs = this.#options.areThreads ? random.between(0, 50) : random.between(2_000, 20_000);
    for (const open of worker.open) {
      if (!isInnocent) this.poisoned.add(open.batch.id);
      this.#world.after(noticedMs, open.coordinator, () =>
        open.answer({
          kind: 'lost',
          batchId: open.batch.id,
          reason: `${process.name} died`,
          ...(this.#options.areThreads ? { ended: true } : {}),
        }),
      );
    }
    this.#fill();
  }

  /**
   * Threads end with their process; workers of a fleet work on for whoever has sent their batches, unless all machines
   * start anew.
   */
  onCoordinatorEnd(areAllEnded: boolean): void {
    if (!this.#options.areThreads && !areAllEnded) return;
    for (const { process } of this.#all) process.kill();
    this.#all.clear();
    this.#workers = [];
  }
}
