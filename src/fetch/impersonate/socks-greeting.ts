/** The server's side of SOCKS 5 (RFC 1928, RFC 1929), for one connection: bytes in, answers and the requested address out. */

const VERSION = 5;
const WITH_PASSWORD = 2;
const CONNECT = 1;
/** A greeting, two names of 255 bytes and a request. */
const BYTES_MAX = 1_024;

interface SocksTarget {
  user: string;
  host: string;
  port: number;
}

interface Step {
  /** Null ends the connection. */
  answer: Buffer | null;
  target: SocksTarget | null;
}

const MORE: Step = { answer: Buffer.alloc(0), target: null };
const OVER: Step = { answer: null, target: null };

export class SocksGreeting {
  static readonly CONNECTED = Buffer.from([VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  static readonly REFUSED = Buffer.from([VERSION, 2, 0, 1, 0, 0, 0, 0, 0, 0]);

  readonly #knows: (user: string, password: string) => boolean;
  #bytes: Buffer = Buffer.alloc(0);
  #stage: 'methods' | 'password' | 'request' | 'done' = 'methods';
  #user = '';

  constructor(knows: (user: string, password: string) => boolean) {
    this.#knows = knows;
  }

  take(bytes: Buffer): Step {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (this.#bytes.length > BYTES_MAX) return OVER;
    if (this.#stage === 'methods') return this.#methods();
    if (this.#stage === 'password') return this.#password();
    return this.#stage === 'request' ? this.#request() : OVER;
  }

  #methods(): Step {
    const [version, count] = this.#bytes;
    if (version !== undefined && version !== VERSION) return OVER;
    if (count === undefined || this.#bytes.length < 2 + count) return MORE;
    if (!this.#bytes.subarray(2, 2 + count).includes(WITH_PASSWORD)) return OVER;
    return this.#next('password', 2 + count, Buffer.from([VERSION, WITH_PASSWORD]));
  }

  #password(): Step {
    const userLength = this.#bytes[1];
    if (userLength === undefined) return MORE;
    const passwordLength = this.#bytes[2 + userLength];
    if (passwordLength === undefined || this.#bytes.length < 3 + userLength + passwordLength) return MORE;
    const user = this.#bytes.toString('latin1', 2, 2 + userLength);
    const end = 3 + userLength + passwordLength;
    if (!this.#knows(user, this.#bytes.toString('latin1', 3 + userLength, end))) return OVER;
    this.#user = user;
    return this.#next('request', end, Buffer.from([1, 0]));
  }

  #request(): Step {
    if (this.#bytes.length < 5) return MORE;
    if (this.#bytes[1] !== CONNECT) return OVER;
    const kind = this.#bytes[3];
    const length = kind === 1 ? 4 : kind === 4 ? 16 : kind === 3 ? this.#bytes[4]! : 0;
    const start = kind === 3 ? 5 : 4;
    if (length === 0) return OVER;
    if (this.#bytes.length < start + length + 2) return MORE;
    const address = this.#bytes.subarray(start, start + length);
    const port = this.#bytes.readUInt16BE(start + length);
    this.#stage = 'done';
    return { answer: Buffer.alloc(0), target: { user: this.#user, host: hostOf(kind!, address), port } };
  }

  #next(stage: 'password' | 'request', taken: number, answer: Buffer): Step {
    this.#bytes = this.#bytes.subarray(taken);
    this.#stage = stage;
    return { answer, target: null };
  }
}

function hostOf(kind: number, address: Buffer): string {
  if (kind === 3) return address.toString('latin1');
  if (kind === 1) return address.join('.');
  const groups = Array.from({ length: 8 }, (_, index) => address.readUInt16BE(index * 2).toString(16));
  return groups.join(':');
}
