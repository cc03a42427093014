import { crc32, deflateSync } from 'node:zlib';
import type { Product } from './catalogue.ts';

/** A soft landscape in the colour of the category; the product's number moves the sun and the hills. */
export function productSvg(product: Product): string {
  const { hue } = product.category;
  const shift = (product.id * 37) % 60;
  const sunX = 60 + ((product.id * 53) % 200);
  const hill = 140 + ((product.id * 29) % 50);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 240" width="320" height="240">
<defs><linearGradient id="s" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="hsl(${hue + shift},45%,88%)"/><stop offset="1" stop-color="hsl(${hue},38%,72%)"/></linearGradient></defs>
<rect width="320" height="240" fill="url(#s)"/>
<circle cx="${sunX}" cy="78" r="32" fill="hsl(${hue + 20},70%,94%)"/>
<path d="M0 ${hill} Q80 ${hill - 50} 160 ${hill} T320 ${hill - 10} V240 H0Z" fill="hsl(${hue},32%,52%)"/>
<path d="M0 ${hill + 34} Q110 ${hill} 200 ${hill + 36} T320 ${hill + 26} V240 H0Z" fill="hsl(${hue},36%,38%)"/>
</svg>
`;
}

function pngChunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}

/** The shop's mark: a pine on a disc, drawn pixel by pixel. */
export function logoPng(size = 56): Buffer {
  const stride = size * 4 + 1;
  const pixels = Buffer.alloc(stride * size);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const fromCentre = Math.hypot(x - size / 2 + 0.5, y - size / 2 + 0.5);
      if (fromCentre > size / 2) continue;
      const tier = ((y / size) * 3.4) % 1;
      const inTree =
        y > size * 0.18 && y < size * 0.78 && Math.abs(x - size / 2 + 0.5) < size * (0.08 + tier * 0.2);
      pixels.set(inTree ? [251, 250, 246, 255] : [31, 111, 100, 255], y * stride + 1 + x * 4);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(pixels)),
    pngChunk('IEND', new Uint8Array()),
  ]);
}
