import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomFillSync,
  timingSafeEqual,
} from 'node:crypto';

/**
 * Signs and encrypts what goes through a place that others can read or write: Redis, and the blobs.
 *
 *   0x01 · id of the key (4) · nonce (12) · tag of AES-GCM (16) · HMAC-SHA-256 (32) · body under AES-256-GCM
 *   0x00 · body                                                   without a fleet key, for a Redis on this machine
 *
 * The HMAC covers all of it and the context: what kind of message it is, from which fleet, and about which batch. So a
 * message is of no use in another place than its own.
 */

/** Which message it is. The first word is the kind; two kinds never have the same. */
export type SealContext = readonly [kind: string, ...where: string[]];

export interface MessageSeal {
  /** Whether messages are signed at all. */
  readonly isSigned: boolean;
  /** Of its keys, and no secret: whoever has none of them has another key. */
  readonly keyIds: readonly string[];
  seal(context: SealContext, body: Buffer): Buffer;
  /** Throws `SealError` when the message is not what the context says, or was not made with one of the keys. */
  open(context: SealContext, message: Buffer): Buffer;
}

export class SealError extends Error {}

const PLAIN = 0;
const SEALED = 1;
const ID_AT = 1;
const NONCE_AT = 5;
const TAG_AT = 17;
const MAC_AT = 33;
const BODY_AT = 65;

/** With no keys nothing is signed, and nothing that is signed is taken. */
export function openMessageSeal(keys: readonly string[]): MessageSeal {
  const derived = keys.map(deriveKey);
  const [own] = derived;
  if (!own) return PLAIN_SEAL;
  return {
    isSigned: true,
    keyIds: derived.map(({ id }) => id.toString('hex')),
    seal: (context, body) => seal(own, context, body),
    open(context, message) {
      if (message[0] !== SEALED || message.length < BODY_AT)
        throw new SealError('it is not signed with the fleet key');
      const key = derived.find(({ id }) => message.subarray(ID_AT, NONCE_AT).equals(id));
      if (!key) throw new SealError('it is signed with another fleet key');
      return open(key, context, message);
    },
  };
}

const PLAIN_SEAL: MessageSeal = {
  isSigned: false,
  keyIds: [],
  seal: (_, body) => Buffer.concat([Buffer.of(PLAIN), body]),
  open(_, message) {
    if (message[0] === PLAIN) return message.subarray(1);
    throw new SealError(
      message[0] === SEALED ? 'it is signed with a fleet key, and there is none here' : 'it is no message',
    );
  },
};

/** As objects: for a key of bytes, node:crypto walks the stack with each message to see who gives it, 6 µs each time. */
interface DerivedKey {
  id: Buffer;
  signing: KeyObject;
  encryption: KeyObject;
}

/** One key for each purpose, as RFC 5869 derives them. */
function deriveKey(text: string): DerivedKey {
  const derive = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', text, 'seine fleet key', `seine 1 ${purpose}`, bytes));
  return {
    id: derive('id', 4),
    signing: createSecretKey(derive('signing', 32)),
    encryption: createSecretKey(derive('encryption', 32)),
  };
}

function seal({ id, signing, encryption }: DerivedKey, context: SealContext, body: Buffer): Buffer {
  const message = Buffer.allocUnsafe(BODY_AT + body.length);
  message[0] = SEALED;
  id.copy(message, ID_AT);
  const nonce = randomFillSync(message.subarray(NONCE_AT, TAG_AT));
  const cipher = createCipheriv('aes-256-gcm', encryption, nonce);
  const encrypted = cipher.update(body);
  encrypted.copy(message, BODY_AT);
  cipher.final();
  cipher.getAuthTag().copy(message, TAG_AT);
  macOf(signing, context, message.subarray(0, MAC_AT), encrypted).copy(message, MAC_AT);
  return message;
}

function open({ signing, encryption }: DerivedKey, context: SealContext, message: Buffer): Buffer {
  const encrypted = message.subarray(BODY_AT);
  const mac = macOf(signing, context, message.subarray(0, MAC_AT), encrypted);
  if (!timingSafeEqual(mac, message.subarray(MAC_AT, BODY_AT)))
    throw new SealError('its signature is wrong, or it belongs elsewhere');
  const decipher = createDecipheriv('aes-256-gcm', encryption, message.subarray(NONCE_AT, TAG_AT));
  decipher.setAuthTag(message.subarray(TAG_AT, MAC_AT));
  const body = decipher.update(encrypted);
  // GCM keeps nothing back: this only checks the tag.
  decipher.final();
  return body;
}

function macOf(key: KeyObject, context: SealContext, head: Buffer, encrypted: Buffer): Buffer {
  // As JSON, so that no two lists of words give the same bytes; it has no character 0.
  return createHmac('sha256', key)
    .update(`${JSON.stringify(context)}\0`)
    .update(head)
    .update(encrypted)
    .digest();
}
