/** Advertisers and trackers that are met most; a host below one of them counts, too. Short on purpose: no blocklist. */
const AD_HOSTS = new Set(
  `2mdn.net 33across.com 3lift.com a-mo.net adcolony.com adform.net adition.com adkernel.com adnxs.com adroll.com
adsafeprotected.com adsrvr.org adtechus.com advertising.com agkn.com amazon-adsystem.com amplitude.com app-measurement.com
appsflyer.com atdmt.com bat.bing.com bidswitch.net bing-ads.com bluekai.com branch.io casalemedia.com chartbeat.com
chartbeat.net clarity.ms clicktale.net cloudflareinsights.com connect.facebook.net contextweb.com crazyegg.com criteo.com
criteo.net crwdcntrl.net demdex.net dotomi.com doubleclick.net doubleverify.com everesttech.net exelator.com
eyeota.net flashtalking.com fls.doubleclick.net freshmarketer.com fullstory.com google-analytics.com
googleadservices.com googlesyndication.com googletagmanager.com googletagservices.com gumgum.com heapanalytics.com
hotjar.com hotjar.io id5-sync.com imrworldwide.com indexww.com inspectlet.com ipredictive.com kissmetrics.com
krxd.net lijit.com liveintent.com liveramp.com lkqd.net luckyorange.com mathtag.com matomo.cloud media.net
mixpanel.com moatads.com mookie1.com mouseflow.com mxpnl.com newrelic.com nr-data.net omtrdc.net onetag-sys.com
openx.net optimizely.com outbrain.com pardot.com permutive.com pixel.wp.com pubmatic.com quantserve.com
quantcount.com revcontent.com rlcdn.com rubiconproject.com scorecardresearch.com segment.com segment.io
serving-sys.com sharethis.com sharethrough.com simpli.fi smartadserver.com snapads.com sonobi.com sovrn.com
spotxchange.com stackadapt.com stats.wp.com taboola.com tapad.com teads.tv tiqcdn.com tremorhub.com tribalfusion.com
turn.com undertone.com usabilla.com vidazoo.com w55c.net yandex-metrica.com yieldmo.com zedo.com zemanta.com`.split(
    /\s+/,
  ),
);

export function isAdHost(hostname: string): boolean {
  const labels = hostname.toLowerCase().replace(/\.$/, '').split('.');
  for (let at = 0; at < labels.length - 1; at++) if (AD_HOSTS.has(labels.slice(at).join('.'))) return true;
  return false;
}
