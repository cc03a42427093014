import type { Metric } from './text-format.ts';

interface SlotUse {
  /** Batches that may be under way at once. */
  slots: number;
  busy: number;
}

export function slotMetrics({ slots, busy }: SlotUse): Metric[] {
  return [
    {
      name: 'seine_worker_slots',
      type: 'gauge',
      help: 'Batches that workers can have at once, by whether they have one.',
      samples: [
        { labels: { state: 'busy' }, value: busy },
        { labels: { state: 'free' }, value: Math.max(0, slots - busy) },
      ],
    },
  ];
}
