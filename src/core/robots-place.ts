/** What an answer is kept under: the origin whose robots.txt it is, or the URL of any other file that one redirects to. */
export function robotsPlaceOf(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return pathname === '/robots.txt' && search === '' ? origin : url;
}

export function robotsUrlOf(place: string): string {
  return isOrigin(place) ? `${place}/robots.txt` : place;
}

/** Whether what is kept there are the rules of that place itself, and not only of those that redirect to it. */
export function isOrigin(place: string): boolean {
  return !place.includes('/', place.indexOf('://') + 3);
}
