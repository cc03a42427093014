/** Parameters that tell where a visitor came from and never which page is meant. */
const TRACKING_NAMES =
  'utm_[^=&]*|gclid|gclsrc|gbraid|wbraid|dclid|gad_source|gad_campaignid|srsltid|fbclid|igshid|igsh|msclkid|yclid|' +
  'ysclid|twclid|ttclid|epik|irclickid|li_fat_id|rb_clickid|wickedid|mc_cid|mc_eid|mkt_tok|vero_id|vero_conv|' +
  'oly_anon_id|oly_enc_id|_ga|_gl|_kx|_hsenc|_hsmi|__hstc|__hssc|__hsfp|hsctatracking|_openstat';
const HAS_TRACKING = new RegExp(`(?:^|&)(?:${TRACKING_NAMES})(?:[=&]|$)`, 'i');
const IS_TRACKING = new RegExp(`^(?:${TRACKING_NAMES})(?:=|$)`, 'i');

/** `query` is without its `?`. What is neither dropped nor moved keeps its bytes. */
export function normalizeQuery(
  query: string,
  options: { stripTracking: boolean; sortQuery: boolean },
): string {
  if (!options.sortQuery && !(options.stripTracking && HAS_TRACKING.test(query))) return query;
  let pairs = query.split('&');
  if (options.stripTracking) pairs = pairs.filter((pair) => !IS_TRACKING.test(pair));
  if (options.sortQuery) {
    const nameOf = (pair: string) =>
      pair.slice(0, pair.indexOf('=') === -1 ? pair.length : pair.indexOf('='));
    pairs = pairs.filter((pair) => pair !== '');
    pairs.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : 0));
  }
  return pairs.join('&');
}
