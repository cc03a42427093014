import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';

// biome-ignore lint/suspicious/noExplicitAny: Thrift structs have fields by number.
type Struct = any;

/** A Parquet file with another footer, as structs with `field_1`, `field_2`: what no writer at hand would write. */
export function withFooter(file: Buffer, change: (footer: Struct) => void): Buffer {
  const length = file.readUInt32LE(file.length - 8);
  const start = file.length - 8 - length;
  const view = new DataView(file.buffer, file.byteOffset + start, length);
  const footer: Struct = deserializeTCompactProtocol({ view, offset: 0 });
  change(footer);
  const writer = new ByteWriter();
  serializeTCompactProtocol(writer, footer);
  const bytes = Buffer.from(writer.getBytes());
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return Buffer.concat([file.subarray(0, start), bytes, size, Buffer.from('PAR1')]);
}

/** The first column of the first row group. */
export function firstColumn(footer: Struct): Struct {
  return footer.field_4[0].field_1[0];
}
