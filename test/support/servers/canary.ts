import dgram from 'node:dgram';
import { once } from 'node:events';
import http from 'node:http';
import type net from 'node:net';

/** Sits at an address that nobody may reach, and counts who does: over TCP and UDP. */

export const CANARY_ADDRESS = '127.0.0.2';

export interface Canary {
  port: number;
  /** Connections and packets. */
  hits(): number;
  paths(): string[];
  close(): Promise<void>;
}

export async function openCanary(): Promise<Canary> {
  let hits = 0;
  const paths: string[] = [];
  const server = http.createServer((request, response) => {
    paths.push(request.url ?? '');
    response.setHeader('Access-Control-Allow-Origin', '*').end('inside');
  });
  server.on('connection', () => hits++);
  server.on('upgrade', (request, socket) => {
    paths.push(request.url ?? '');
    socket.destroy();
  });
  server.listen(0, CANARY_ADDRESS);
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const udp = dgram.createSocket('udp4', () => hits++);
  udp.bind(port, CANARY_ADDRESS);
  await once(udp, 'listening');
  return {
    port,
    hits: () => hits,
    paths: () => paths,
    async close() {
      udp.close();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Every way that a page has to ask for something; after those in `leaves` the page is another one. */
export function waysToAsk(at: string): { stays: string[]; leaves: string[] } {
  const script = (code: string) => `<script>${code}</script>`;
  const worker = `fetch('${at}/worker', { mode: 'no-cors' })`;
  return {
    stays: [
      `<img src="${at}/img">`,
      `<script src="${at}/script" async></script>`,
      `<iframe src="${at}/iframe"></iframe>`,
      `<style>body { background: url(${at}/css) } @font-face { font-family: x; src: url(${at}/font) } p { font-family: x }</style><p>x</p>`,
      `<video src="${at}/video" autoplay></video><object data="${at}/object"></object>`,
      `<link rel=prefetch href="${at}/prefetch"><link rel=preload as=fetch href="${at}/preload">`,
      `<link rel=preconnect href="${at}"><link rel=dns-prefetch href="${at}">`,
      script(`fetch('${at}/fetch', { mode: 'no-cors' }).catch(() => {})`),
      script(`navigator.sendBeacon('${at}/beacon', 'x')`),
      script(`new EventSource('${at}/events')`),
      script(`new WebSocket('${at.replace('http', 'ws')}/socket')`),
      script(`new Worker(URL.createObjectURL(new Blob([${JSON.stringify(worker)}])))`),
      script(`const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${at.slice(7)}' }] });
        peer.createDataChannel('x');
        peer.createOffer().then((offer) => peer.setLocalDescription(offer));`),
      `<form id=f action="${at}/form" target=x></form><iframe name=x></iframe>${script('f.submit()')}`,
      script(`window.open('${at}/popup')`),
      `<img src="/redirects-in"><iframe src="/redirects-in"></iframe>`,
    ],
    leaves: [
      `<meta http-equiv=refresh content="0;url=${at}/refresh">`,
      script(`location.href = '${at}/location'`),
      script(`location.href = '/redirects-in'`),
    ],
  };
}
