/** Line drawings of 20 × 20, in the colour of the text. */

const PATHS = {
  jobs: 'M3 5h14M3 10h14M3 15h9',
  hosts:
    'M3 10a7 7 0 1 0 14 0a7 7 0 1 0-14 0M3 10h14M10 3c2.4 2 3.4 4.4 3.4 7s-1 5-3.4 7c-2.4-2-3.4-4.4-3.4-7s1-5 3.4-7',
  workers: 'M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3',
  cost: 'M10 3v14M13.5 6.2C12.7 5.2 11.5 5 10 5c-2 0-3.5.9-3.5 2.5S8 10 10 10s3.5.9 3.5 2.5S12 15 10 15c-1.600 0-2.900-.4-3.600-1.400',
  webhooks:
    'M4 13a3 3 0 1 0 5 2.200h5M7.500 8.500A3 3 0 1 1 12.600 7L10 11.400M13 17a3 3 0 1 0-.6-5L10 7.500',
  alerts:
    'M10 3a4.500 4.500 0 0 1 4.500 4.500c0 4 1.500 5.500 1.500 5.500H4s1.500-1.500 1.500-5.500A4.500 4.500 0 0 1 10 3M8.400 16a1.700 1.700 0 0 0 3.200 0',
  settings: 'M4 6h7M15 6h1M4 14h1M9 14h7M11 6a2 2 0 1 0 4 0a2 2 0 1 0-4 0M5 14a2 2 0 1 0 4 0a2 2 0 1 0-4 0',
  plus: 'M10 4v12M4 10h12',
  sun: 'M10 6.500a3.500 3.500 0 1 0 0 7a3.500 3.500 0 1 0 0-7M10 2v1.500M10 16.500V18M2 10h1.500M16.500 10H18M4.300 4.300l1.100 1.100M14.600 14.600l1.100 1.100M4.300 15.700l1.100-1.100M14.600 5.400l1.100-1.100',
  moon: 'M16 11.500A6.500 6.500 0 1 1 8.500 4a5.200 5.200 0 0 0 7.500 7.500',
  search: 'M4 9a5 5 0 1 0 10 0a5 5 0 1 0-10 0M13 13l4 4',
  stop: 'M6 6h8v8H6z',
  play: 'M7 5l8 5l-8 5z',
  retry: 'M15.500 7A6.200 6.200 0 1 0 16.200 11M16 3.500V7h-3.500',
  close: 'M5 5l10 10M15 5L5 15',
  download: 'M10 3v9M6 9l4 4l4-4M4 16h12',
  next: 'M8 5l5 5l-5 5',
  back: 'M12 5l-5 5l5 5',
  more: 'M4 6h12M4 10h12M4 14h12',
  external: 'M8 5H5v10h10v-3M11 4h5v5M16 4l-7 7',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
