import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Refusals as sites send them, shortened, and ordinary pages that could be mistaken for one. */

export interface BlockPage {
  name: string;
  status: number;
  headers?: string[];
  body: string;
}

const html = (title: string, body: string, head = '') =>
  `<!DOCTYPE html><html lang="en-US"><head><title>${title}</title>${head}</head><body>${body}</body></html>`;

export const CHALLENGES: (BlockPage & { code: string; by: RegExp })[] = [
  {
    name: 'Cloudflare managed challenge',
    status: 403,
    code: 'captcha',
    by: /Cloudflare/,
    body: html(
      'Just a moment...',
      '<noscript>Enable JavaScript and cookies to continue</noscript><script>(function(){window._cf_chl_opt={cvId:"3",cType:"managed"};var a=document.createElement("script");a.src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=8";}());</script>',
    ),
  },
  {
    name: 'Cloudflare by its header alone',
    status: 403,
    headers: ['CF-Mitigated', 'challenge'],
    code: 'captcha',
    by: /cf-mitigated/,
    body: '',
  },
  {
    name: 'Cloudflare block',
    status: 403,
    code: 'blocked',
    by: /Cloudflare/,
    body: html(
      'Attention Required! | Cloudflare',
      '<div id="cf-error-details"><h1>Sorry, you have been blocked</h1><h2>You are unable to access example.com</h2></div>',
    ),
  },
  {
    name: 'Cloudflare challenge with 503, as in former years',
    status: 503,
    code: 'captcha',
    by: /Cloudflare/,
    body: html(
      'Just a moment...',
      '<div class="cf-browser-verification cf-im-under-attack" id="cf-challenge-running">',
    ),
  },
  {
    name: 'DataDome',
    status: 403,
    code: 'captcha',
    by: /DataDome/,
    body: `<html><head><title>example.com</title></head><body><p id="cmsg">Please enable JS and disable any ad blocker</p><script data-cfasync="false">var dd={'rt':'c','cid':'AHrlqAAAAA','hsh':'1','t':'bv','s':1,'host':'geo.captcha-delivery.com'}</script><script src="https://ct.captcha-delivery.com/c.js"></script></body></html>`,
  },
  {
    name: 'DataDome as JSON',
    status: 403,
    code: 'captcha',
    by: /DataDome/,
    body: '{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=AHrl"}',
  },
  {
    name: 'HUMAN',
    status: 403,
    code: 'captcha',
    by: /HUMAN/,
    body: html(
      'Access to this page has been denied.',
      '<div id="px-captcha"></div><script>window._pxAppId="PX1234";window._pxJsClientSrc="/x/init.js"</script>',
    ),
  },
  {
    name: 'Akamai',
    status: 403,
    code: 'blocked',
    by: /Akamai/,
    body: `<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don't have permission to access "http&#58;&#47;&#47;example.com&#47;" on this server.<P>Reference&#32;&#35;18&#46;d5b1&#46;17&#46;2<P>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18</BODY></HTML>`,
  },
  {
    name: 'Akamai crypto challenge',
    status: 200,
    code: 'captcha',
    by: /Akamai/,
    body: html('Challenge Validation', '<div id="sec-if-cpt-container"><iframe src="x"></iframe></div>'),
  },
  {
    name: 'Imperva in an empty frame',
    status: 200,
    code: 'soft-block',
    by: /Imperva/,
    body: '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><body><iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31&xinfo=9-1&incident_id=1234-5678&edet=12" frameborder=0>Request unsuccessful. Incapsula incident ID: 1234-5678</iframe></body></html>',
  },
  {
    name: 'AWS WAF',
    status: 405,
    code: 'captcha',
    by: /AWS WAF/,
    body: html(
      'Human Verification',
      '<script>window.gokuProps = {"key":"AQID","iv":"x","context":"y"};</script>',
    ),
  },
  {
    name: 'AWS WAF, silent',
    status: 202,
    headers: ['x-amzn-waf-action', 'challenge'],
    code: 'captcha',
    by: /x-amzn-waf-action/,
    body: '',
  },
  {
    name: 'Amazon',
    status: 200,
    code: 'captcha',
    by: /Amazon/,
    body: html(
      'Robot Check',
      "<form method='get' action='/errors/validateCaptcha'><h4>Type the characters you see in this image:</h4></form>",
    ),
  },
  {
    name: 'Google',
    status: 429,
    code: 'captcha',
    by: /Google/,
    body: html(
      'https://www.google.com/search?q=x',
      'Our systems have detected unusual traffic from your computer network.',
    ),
  },
  {
    name: 'Sucuri',
    status: 200,
    code: 'captcha',
    by: /Sucuri/,
    body: html(
      'You are being redirected...',
      "<noscript>Javascript is required.</noscript><script>sucuri_cloudproxy_js='';</script>",
    ),
  },
  {
    name: 'F5',
    status: 200,
    code: 'soft-block',
    by: /F5/,
    body: '<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with your administrator.<br><br>Your support ID is: 1234<br></body></html>',
  },
  {
    name: 'Kasada',
    status: 429,
    code: 'captcha',
    by: /Kasada/,
    body: '<!DOCTYPE html><html><head></head><body><script>window.KPSDK={};KPSDK.now=typeof performance;</script><script src="/149e9513/2d20/ips.js?KP_UIDz=0"></script></body></html>',
  },
  {
    name: 'Anubis',
    status: 200,
    code: 'captcha',
    by: /Anubis/,
    body: html(
      "Making sure you're not a bot!",
      '<p>x</p>'.repeat(4_000),
      '<script id="anubis_challenge" type="application/json">{}</script>',
    ),
  },
  {
    name: 'hCaptcha interstitial',
    status: 403,
    code: 'captcha',
    by: /h-captcha/,
    body: html(
      'One more step',
      '<h1>Please complete the security check to access the site</h1><div class="h-captcha" data-sitekey="x"></div>',
    ),
  },
  {
    name: 'reCAPTCHA interstitial with 200',
    status: 200,
    code: 'captcha',
    by: /g-recaptcha/,
    body: html(
      'Verification',
      '<p>Please confirm that you are not a robot.</p><form method="post"><div class="g-recaptcha" data-sitekey="x"></div><button>Go on</button></form>',
    ),
  },
  {
    name: 'generic refusal with 200',
    status: 200,
    code: 'soft-block',
    by: /access denied/,
    body: html('Access Denied', '<h1>Access Denied</h1><p>Error 17.</p>'),
  },
  {
    name: 'generic refusal with 403',
    status: 403,
    code: 'blocked',
    by: /automated requests/,
    body: html('Sorry', '<p>We have detected automated requests from your network.</p>'),
  },
  {
    name: 'unusual activity with 200',
    status: 200,
    code: 'soft-block',
    by: /unusual activity/,
    body: html('Oops', '<p>We noticed unusual activity. Try again later.</p>'),
  },
  {
    name: 'a German refusal of automation, with success',
    status: 200,
    code: 'soft-block',
    by: /the page says/,
    body: html(
      'Zugriff verweigert',
      '<p>Der Zugriff auf diese Seite wurde verweigert, da wir glauben, dass Sie Automatisierungstools verwenden.</p>',
    ),
  },
  {
    name: 'a German refusal of automation',
    status: 403,
    code: 'blocked',
    by: /the page says/,
    body: html(
      'Zugriff verweigert',
      '<p>Der Zugriff wurde verweigert, weil Sie automatisierte Werkzeuge verwenden.</p>',
    ),
  },
  {
    name: 'a French refusal of automation',
    status: 200,
    code: 'soft-block',
    by: /the page says/,
    body: html(
      'Accès refusé',
      "<p>Nous pensons que vous utilisez des outils d'automatisation pour parcourir ce site.</p>",
    ),
  },
];

const PARAGRAPHS =
  '<p>Breakfast is served from seven to ten. The house has a garden, and dogs are welcome.</p>'.repeat(20);

/** None of these is a refusal; each has the words of one. */
export const ORDINARY: BlockPage[] = [
  {
    name: 'article about captchas',
    status: 200,
    body: html(
      'What is a CAPTCHA? - Example Encyclopedia',
      `<h1>CAPTCHA</h1><p>A CAPTCHA asks: are you a robot? Sites like Cloudflare show "Just a moment..." and say that you have been blocked, or Access Denied, for unusual traffic.</p>${PARAGRAPHS}`,
    ),
  },
  {
    name: 'contact form with reCAPTCHA',
    status: 200,
    body: html(
      'Contact us',
      '<h1>Contact</h1><form method="post"><label>Mail <input type="email" name="mail"></label><label>Message <textarea name="text"></textarea></label><p>Please confirm that you are not a robot.</p><div class="g-recaptcha" data-sitekey="x"></div><button>Send</button></form>',
      '<script src="https://www.google.com/recaptcha/api.js" async></script>',
    ),
  },
  {
    name: 'login page with Turnstile',
    status: 200,
    body: html(
      'Sign in',
      '<form><input name="user"><input type="password" name="secret"><p>Let us know that you are human</p><div class="cf-turnstile"></div></form>',
    ),
  },
  { name: 'small page', status: 200, body: html('Page 7', '<h1>Page 7</h1><p>A page.</p>') },
  { name: 'tiny page', status: 200, body: '<h1>ok</h1>' },
  {
    name: 'single page application',
    status: 200,
    body: html(
      'Shop',
      '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="/app.js"></script>',
    ),
  },
  {
    name: 'page behind Cloudflare, with its scripts',
    status: 200,
    body: html(
      'Product 7',
      `<h1>Product 7</h1>${PARAGRAPHS}<script>(function(){window['__CF$cv$params']={r:'8',t:'MTc='};var a=document.createElement('script');a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js';})();</script>`,
    ),
  },
  {
    name: 'small page behind Imperva, with its script',
    status: 200,
    body: html(
      'Product 8',
      '<h1>Product 8</h1><p>12 €</p><script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script>',
    ),
  },
  {
    name: 'page behind HUMAN, with its script',
    status: 200,
    body: html('Product 9', '<h1>Product 9</h1><script>window._pxAppId="PX1234";</script>'),
  },
  {
    name: 'page behind DataDome, with its script',
    status: 200,
    body: html(
      'Product 10',
      '<h1>Product 10</h1><script>window.ddjskey="A";</script><script src="https://js.datadome.co/tags.js"></script>',
    ),
  },
  {
    name: 'short blog post with the words in its title',
    status: 200,
    body: html(
      'Access denied: how to repair folder rights',
      `<h1>Access denied</h1><p>Short answer: run chmod.</p>`,
    ),
  },
  {
    name: 'toy shop',
    status: 200,
    body: html(
      'Robots',
      '<h1>Robots and humans</h1><ul><li>Robot 7, verified by 12 humans</li><li>Bot in a box</li></ul>',
    ),
  },
  {
    name: 'robots that are blocked, in a page of rules',
    status: 200,
    body: html('Rules', '<p>Blocked users are listed here. Verified members may write at any moment.</p>'),
  },
  {
    name: 'long page with the title of a refusal',
    status: 200,
    body: html(
      'Just a moment',
      `<h1>Just a moment</h1><p>A novel about a challenge.</p>${PARAGRAPHS.repeat(10)}`,
    ),
  },
  { name: 'missing page', status: 404, body: html('Access Denied', 'You have been blocked') },
  {
    name: 'Apache forbids a folder',
    status: 403,
    body: html(
      '403 Forbidden',
      "<h1>Forbidden</h1><p>You don't have permission to access this resource.</p>",
    ),
  },
  {
    name: 'nginx forbids',
    status: 403,
    body: '<html><head><title>403 Forbidden</title></head><body><center><h1>403 Forbidden</h1></center><hr><center>nginx</center></body></html>',
  },
  {
    name: 'object store forbids',
    status: 403,
    body: '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
  },
  { name: 'overloaded', status: 503, body: html('503', '<h1>Service Temporarily Unavailable</h1>') },
  {
    name: 'too fast',
    status: 429,
    body: html('Too Many Requests', '<p>You have sent unusual traffic. Slow down.</p>'),
  },
  { name: 'broken server', status: 500, body: html('Error', '<p>You have been blocked</p>') },
];

const PAGES = join(import.meta.dirname, '../pages');

export function corpusPages(): BlockPage[] {
  return readdirSync(PAGES).map((name) => ({
    name,
    status: 200,
    body: readFileSync(join(PAGES, name), 'utf8'),
  }));
}
