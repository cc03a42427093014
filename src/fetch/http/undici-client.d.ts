/** Only the client is loaded: all of undici takes 180 ms of CPU in each thread, this 46. */
declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici';
  export default Client;
}

declare module 'undici/lib/core/symbols.js' {
  const symbols: { kParser: symbol };
  export default symbols;
}
