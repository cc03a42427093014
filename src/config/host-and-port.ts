/** `127.0.0.1:8700` or `[::1]:8700`; null when it is neither. */
export function hostAndPort(text: string): { host: string; port: number } | null {
  const [, host, port] = /^(\[[^\]]+\]|[^:]+):(\d{1,5})$/.exec(text) ?? [];
  return host === undefined || Number(port) > 65_535
    ? null
    : { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
