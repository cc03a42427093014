import type { Batch, Report } from '../../src/core/batch/batch.ts';
import { deferredReport } from '../../src/core/batch/report.ts';
import { isLaneTaken } from '../../src/core/pace/address-pace.ts';
import type { Delivery, Dispatcher } from '../../src/ports/dispatcher.ts';
import { Lateness } from '../../src/worker/batch/pace.ts';
import { processBatch, type WorkerTools } from '../../src/worker/batch/process-batch.ts';
import { WantedHosts } from '../../src/worker/batch/wanted-hosts.ts';
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
  /** Each worker has an address, and takes one lane of a host at a time. */
  haveAddresses?: boolean;
  faults: MessageFaults;
}

/** Who hears of a batch. */
interface Receiver {
  coordinator: Process;
  onPart(report: Report): void;
  answer(delivery: Delivery): void;
}

/** A batch on its way, at its worker, or reported to a coordinator that is gone. */
interface OpenBatch {
  batch: Batch;
  /** Null until it arrives. */
  worker: SimWorker | null;
  drain: AbortController;
  wanted: WantedHosts;
  /** Changes when another coordinator takes it over. */
  receiver: Receiver;
  /** News on their way, or here without a coordinator that could hear them, in their order. */
  news: { tell: (receiver: Receiver) => void; isHere: boolean }[];
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
/** What was never sent is known as such after this time. */
const MISSING_MS = 5_000;
/** Beyond a batch's own time, and a little longer than its lease: then a dispatcher says that the batch is lost. */
const LATE_MS_MAX = 31_000;
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
  /** Where workers outlive a coordinator: batches of which the last word was not heard yet. */
  readonly #sent = new Map<number, OpenBatch>();
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
      ...(this.#options.haveAddresses ? { addresses: workers } : {}),
      ...(this.#options.areThreads ? {} : { replyTo: coordinator.name }),
      dispatch: (batch, onPart) => {
        const { promise, receiver } = this.#receiverOf(batch, coordinator, onPart);
        const open = {
          batch,
          worker: null,
          drain: new AbortController(),
          wanted: new WantedHosts(),
          receiver,
          news: [],
        };
        if (!this.#options.areThreads) this.#sent.set(batch.id, open);
        own.add(open);
        this.#world.after(this.#world.random.between(0, 10), null, () => this.#start(open, own));
        return promise;
      },
      adopt: (batch, _, onPart) => {
        const { promise, receiver } = this.#receiverOf(batch, coordinator, onPart);
        const open = this.#sent.get(batch.id);
        if (open) this.#handOver(open, receiver, own);
        else
          this.#world.after(MISSING_MS, coordinator, () =>
            receiver.answer({
              kind: 'lost',
              batchId: batch.id,
              reason: 'it was never sent',
              blameless: true,
            }),
          );
        return promise;
      },
      drain: async () => {
        for (const open of own) this.#drain(open);
      },
      giveBack: (batchId, hosts) => {
        for (const open of own) if (open.batch.id === batchId) this.#askFor(open, hosts);
      },
      recall: (batchId) => {
        for (const open of own) if (open.batch.id === batchId) this.#drain(open);
      },
      close: async () => {},
    };
  }

  /**
   * Every batch is answered for, as all dispatchers do: whoever shares slots between jobs counts those whose answer has
   * not come. A report that comes later is heard all the same, and must change nothing.
   */
  #receiverOf(
    batch: Batch,
    coordinator: Process,
    onPart: (report: Report) => void,
  ): { promise: Promise<Delivery>; receiver: Receiver } {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    let isAnswered = false;
    const answer = (delivery: Delivery) => {
      if (isAnswered && delivery.kind === 'report') onPart(delivery.report);
      isAnswered = true;
      cancel();
      resolve(delivery);
    };
    const cancel = this.#world.after(batch.budgetMs + LATE_MS_MAX, coordinator, () =>
      answer({
        kind: 'lost',
        batchId: batch.id,
        reason: 'no worker answered in time',
        blameless: true,
      }),
    );
    return { promise, receiver: { coordinator, onPart, answer } };
  }

  /** Whether a worker has the batch, or has reported on it, and nothing of that was lost. */
  has(batchId: number): boolean {
    const open = this.#sent.get(batchId);
    return open !== undefined && open.worker?.process.isAlive !== false;
  }

  /** On the worker's own time: a dead one returns nothing. */
  #drain({ drain, worker }: OpenBatch): void {
    this.#world.after(0, worker?.process ?? null, () => drain.abort());
  }

  /** On its way to the worker it takes some time, as everything else. */
  #askFor({ batch, wanted, worker }: OpenBatch, hosts: readonly string[]): void {
    this.trace(`batch ${batch.id} is asked for ${hosts.join(' ')}`);
    this.#world.after(this.#world.random.between(0, 10), worker?.process ?? null, () => wanted.ask(hosts));
  }

  /** Another coordinator hears of it from now on, and what the one before did not. */
  #handOver(open: OpenBatch, receiver: Receiver, own: Set<OpenBatch>): void {
    open.receiver = receiver;
    own.add(open);
    this.trace(`${receiver.coordinator.name} takes over batch ${open.batch.id}`);
    this.#world.after(this.#world.random.between(0, 20), receiver.coordinator, () => this.#hear(open));
  }

  /** Dispatchers hand on what comes from a worker in its order, whatever each message takes. */
  #tell(open: OpenBatch, ms: number, tell: (receiver: Receiver) => void): void {
    const one = { tell, isHere: false };
    open.news.push(one);
    this.#onArrival(open, ms, () => {
      one.isHere = true;
      this.#whereAlive(open, () => this.#hear(open));
    });
  }

  /** The same of what is late: others overtake it. */
  #tellLate(open: OpenBatch, ms: number, tell: (receiver: Receiver) => void): void {
    this.#onArrival(open, ms, () => {
      if (!this.#whereAlive(open, () => tell(open.receiver))) open.news.push({ tell, isHere: true });
    });
  }

  /** On no one's time, where workers outlive their coordinator: a dead one takes no news, but the news stay. */
  #onArrival(open: OpenBatch, ms: number, run: () => void): void {
    this.#world.after(ms, this.#options.areThreads ? open.receiver.coordinator : null, run);
  }

  #whereAlive({ receiver: { coordinator } }: OpenBatch, run: () => void): boolean {
    if (coordinator.isAlive) this.#world.after(0, coordinator, run);
    return coordinator.isAlive;
  }

  /** To whoever has the batch then. */
  #hear(open: OpenBatch): void {
    while (open.news[0]?.isHere) open.news.shift()!.tell(open.receiver);
  }

  #start(open: OpenBatch, own: Set<OpenBatch>): void {
    const { batch, drain, wanted } = open;
    // The machines that it was sent to are gone, and so is whoever sent it.
    if (this.#workers.length === 0) {
      this.#sent.delete(batch.id);
      return;
    }
    const worker = batch.suspects ? this.#startOne() : this.#idlest();
    open.worker = worker;
    const others = [...worker.open].map((each) => each.batch);
    worker.open.add(open);
    const options = {
      drain: drain.signal,
      wanted,
      onPart: (report: Report) => this.#send(open, report, (receiver, said) => receiver.onPart(said)),
    };
    // On the worker's own time: a frozen one takes the batch when it goes on.
    this.#world.after(0, worker.process, () => {
      this.trace(
        `${worker.process.name} takes batch ${batch.id} (${batch.tasks.map(({ id }) => id).join(' ')})`,
      );
      const about = { worker: worker.process.name, now: worker.process.clock.now() };
      const work = isLaneTaken(batch, others)
        ? Promise.resolve(deferredReport(batch, about))
        : processBatch(batch, worker.tools, options);
      void work.then((report) => {
        worker.open.delete(open);
        own.delete(open);
        if (batch.suspects) this.#all.delete(worker);
        this.#send(open, report, (receiver, again) => {
          this.#sent.delete(batch.id);
          receiver.answer({ kind: 'report', report: again });
          if (again !== report) receiver.onPart(again);
        });
      });
    });
  }

  /** A report on its way: it may be lost, doubled, or late, and is overtaken by others then. */
  #send(open: OpenBatch, report: Report, receive: (receiver: Receiver, report: Report) => void): void {
    const { random } = this.#world;
    const { lost, doubled, late } = this.#options.faults;
    const about = `report ${report.part}${report.final ? ' (last)' : ''} of batch ${report.batchId}`;
    if (random.chance(lost)) {
      this.faults++;
      this.trace(`${about} is lost`);
      this.#sent.delete(open.batch.id);
      return;
    }
    let ms = random.between(0, 20);
    if (random.chance(late)) {
      this.faults++;
      ms += random.pick(LATE_MS);
      this.trace(`${about} is ${ms} ms late`);
      this.#tellLate(open, ms, (receiver) => receive(receiver, report));
    } else this.#tell(open, ms, (receiver) => receive(receiver, report));
    if (!random.chance(doubled)) return;
    this.faults++;
    this.trace(`${about} comes twice`);
    this.#tellLate(open, ms + random.between(0, 3_000), (receiver) => receive(receiver, { ...report }));
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
      this.#tell(open, noticedMs, ({ answer }) => {
        this.#sent.delete(open.batch.id);
        answer({
          kind: 'lost',
          batchId: open.batch.id,
          reason: `${process.name} died`,
          ...(this.#options.areThreads ? { ended: true } : {}),
        });
      });
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
    this.#sent.clear();
    this.#workers = [];
  }
}
