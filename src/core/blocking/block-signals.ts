/**
 * Sentences that a site says to whom it takes for a robot, or to whom it wants to log in, in the languages of large sites.
 * `strong` ones speak to the visitor about this very visit; `weak` ones are a topic as often. Texts are compared in lower
 * case, with straight apostrophes. `part` is a literal of each sentence: where none occurs, nothing else is looked at.
 * `word`, where the part is too short to be found among bytes: a word of the sentence, which is looked for instead.
 */
interface Sentence {
  weight: number;
  part: string;
  pattern: RegExp;
  word?: string;
}

export const STRONG = 4;
const WEAK = 2;

const sentence = (weight: number, part: string, pattern: RegExp): Sentence => ({ weight, part, pattern });
const strong = (part: string, pattern: RegExp) => sentence(STRONG, part, pattern);
const weak = (part: string, pattern: RegExp) => sentence(WEAK, part, pattern);

export const REFUSALS: readonly Sentence[] = [
  // English
  strong('javascript and cookies', /enable (?:javascript|js) and cookies to continue/),
  strong('been blocked', /(?:^|[.!?] |, |\| )(?:sorry, )?you have been blocked(?! (?:by|from|for) )/),
  strong(
    'been blocked',
    /your (?:request|access|ip|ip address)(?: to this \w+)? (?:has|have) been (?:\w+ )?blocked/,
  ),
  strong('request was blocked', /this request was blocked/),
  strong('request was blocked', /your request was blocked/),
  strong(
    'looks automated',
    /your (?:request|traffic|browsing)\w* (?:looks|seems|appears) (?:to be )?automated/,
  ),
  strong('has been denied', /access to this (?:page|site|website|resource) has been denied/),
  strong('has been blocked', /access has been blocked/),
  strong(
    'your ip address',
    /your ip address (?:has been|is) (?:temporarily |permanently )?(?:blocked|banned|blacklisted|flagged|limited|restricted|denied)/,
  ),
  strong('your access to this', /your access to this (?:site|page|service) has been/),
  strong('unusual ', /unusual (?:traffic|activity)[^.]{0,40} (?:from|on|in) your/),
  strong('unusual ', /(?:detected|noticed|seen) unusual (?:traffic|activity)/),
  strong('suspicious activity', /(?:detected|noticed|due to|because of)[^.]{0,20} suspicious activity/),
  strong('automation tools', /using automation tools to browse/),
  strong('automated access', /automated access to this (?:site|website|service|page) is not/),
  strong(
    'automated ',
    /(?:appears?|seems?|suspect|sent|sending|detected)[^.]{0,40} automated (?:requests|queries|traffic|access)/,
  ),
  strong(
    'you are not a ',
    /(?:confirm|verify|prove|check|make sure|know|certain|show)\w*[^.]{0,30} you(?:'re| are) not a (?:ro)?bot/,
  ),
  strong(
    'you are a human',
    /(?:confirm|verify|prove|check|make sure)\w*[^.]{0,30} you(?:'re| are) (?:a )?human/,
  ),
  strong('re human', /(?:confirm|verify|prove|check|make sure)\w*[^.]{0,30} you(?:'re| are) (?:a )?human/),
  strong(
    'you are human',
    /(?:confirm|verify|prove|check|make sure)\w*[^.]{0,30} you(?:'re| are) (?:a )?human/,
  ),
  strong('might be a bot', /made us think (?:that )?you might be a bot/),
  strong('and not a bot', /really you and not a bot/),
  strong('prove your humanity', /prove your humanity/),
  strong('your browser', /(?:verifying|checking) your browser (?:before|\.\.\.|…|$)/),
  strong('connection is secure', /checking if the site connection is secure/),
  strong('security of your', /needs to review the security of your connection/),
  strong('security check', /complete the security check/),
  strong('requests from your', /too many requests from your/),
  strong('requests too quickly', /you(?:'re| are) sending (?:too many )?requests too quickly/),
  strong('ddos protection by', /ddos protection by/),
  strong('complete the puzzle', /(?:slide|drag)[^.]{0,30} to complete the puzzle/),
  weak('bot detected', /bot detected/),
  weak('are you a robot', /are you a robot/),
  weak('are you human', /are you human/),
  weak('are you a human', /are you a human/),
  weak('robot or human', /robot or human/),
  weak('not a robot', /(?:i'm|i am) not a robot/),
  weak('unusual traffic', /unusual traffic/),
  // German
  strong(
    'kein roboter',
    /(?:bestätig|beweis|sicher|zeig)\w*[^.]{0,40} (?:sie|du) kein roboter (?:sind|bist)/,
  ),
  {
    ...strong(
      'wurde ',
      /ihr(?:e)? (?:zugriff|anfrage|ip|ip-adresse)[^.]{0,50} wurde[^.]{0,40} (?:gesperrt|blockiert|verweigert|abgelehnt)/,
    ),
    word: 'wurde',
  },
  strong('wurde blockiert', /ihre anfrage wurde blockiert/),
  strong(
    'ungewöhnliche',
    /ungewöhnliche\w* (?:aktivität|datenverkehr|zugriffe|anfragen)\w*[^.]{0,30} (?:aus|von|in) (?:ihrem|deinem)/,
  ),
  strong('browser wird ', /(?:ihr|dein) browser wird (?:über|ge)prüft/),
  strong('javascript und cookies', /javascript und cookies[^.]{0,10} um fortzufahren/),
  strong('automatisierte ', /automatisierte (?:zugriffe|anfragen)[^.]{0,50} (?:nicht|untersagt|verboten)/),
  strong(
    'automatisier',
    /(?:dass|weil) sie (?:automatisierungs|automatisierte )(?:tools|werkzeuge|software|programme) (?:verwenden|nutzen|benutzen)/,
  ),
  // French
  strong("outils d'automatisation", /vous utilisez des outils d'automatisation/),
  strong('pas un robot', /(?:confirm|vérifi|prouv|assur)\w*[^.]{0,40} (?:vous n'êtes|tu n'es) pas un robot/),
  strong('vous avez ', /vous avez été bloqué/),
  strong('navigation semble', /(?:refusé|bloqué)[^.]{0,60} navigation semble automatisée/),
  strong('de votre navigateur', /vérification de votre navigateur/),
  strong('javascript et les cookies', /activez javascript et les cookies pour continuer/),
  strong('inhabituelle', /activité inhabituelle provenant de votre/),
  strong('trop de requ', /trop de requêtes[^.]{0,40} votre adresse/),
  strong('le puzzle', /glissez[^.]{0,40} le puzzle/),
  // Spanish, Italian, Portuguese
  strong('un robot', /confirm\w* que no (?:eres|es) un robot/),
  strong('actividad inusual', /actividad inusual (?:desde|en|de) (?:su|tu) red/),
  strong('navegador antes', /comprobando (?:su|tu) navegador antes/),
  strong('un robot', /conferma (?:che )?(?:di )?non (?:essere|sei) un robot/),
  strong('indirizzo ip', /(?:tuo|suo) indirizzo ip è stato bloccato/),
  strong('seu navegador', /verificando o seu navegador/),
  strong('fego incomum', /tráfego incomum (?:na|da) (?:sua|tua) rede/),
  { ...strong('um rob', /(?:você não é|não és) um robô/), word: 'robô' },
  // Dutch, Polish, Turkish
  strong('geen robot', /bevestig[^.]{0,20} (?:je|u) geen robot ben/),
  strong('is geblokkeerd', /(?:je|uw) toegang[^.]{0,40} is geblokkeerd/),
  strong('robotem', /potwierdź, że nie jesteś robotem/),
  strong('adres ip zosta', /adres ip został zablokowany/),
  strong('robot olmad', /robot olmadığınızı doğrulayın/),
  strong('ip adresiniz', /ip adresiniz[^.]{0,50} engellendi/),
  // Russian, Japanese, Chinese
  strong('не робот', /подтвердите, что вы не робот/),
  strong('ваш браузер', /проверяем ваш браузер/),
  strong('вашего ip', /запросы с вашего ip-адреса/),
  strong('ロボットではない', /ロボットではないことを確認/),
  strong('ロボットではありません', /私はロボットではありません/),
  strong('トラフィックが検出', /通常と異なるトラフィックが検出/),
  strong('不是机器人', /证明您?不是机器人/),
  strong('完成验证', /请(?:完成验证|拖动滑块完成验证)/),
];

/** Said instead of the page, beside a field for a password. */
export const LOGIN_WALLS: readonly Sentence[] = [
  strong(
    ' in to ',
    /(?:log|sign) in to (?:continue|proceed|see this|view this|access this|read this|unlock)/,
  ),
  { ...strong('melde ', /melde dich an, um/), word: 'melde' },
  strong('melden sie', /melden sie sich an, um/),
  strong('connectez-vous', /connectez-vous pour (?:continuer|voir|accéder)/),
  strong('inicia sesi', /inicia sesión para (?:continuar|ver)/),
  strong('accedi per', /accedi per (?:continuare|vedere|proseguire)/),
  strong('entrar para', /(?:inicie|inicia|faça) (?:sessão|login)[^.]{0,10} para (?:continuar|ver)/),
  strong(' in om ', /log in om (?:door|verder)/),
  strong('aby kontynuowa', /zaloguj się, aby kontynuować/),
  strong('чтобы продолжить', /войдите, чтобы продолжить/),
  strong('ログインして', /(?:続行するには|続けるには)ログインして/),
  strong('登录后', /请登录后/),
];

/** Titles in other languages, whole, as they are written; those of known defences are in `block-markers.ts`. */
export const FOREIGN_TITLES: ReadonlySet<string> = new Set([
  ...[
    'zugriff verweigert',
    'zugang verweigert',
    'anfrage blockiert',
    'sicherheitsüberprüfung',
    'einen moment',
  ],
  ...['sind sie ein mensch?', 'bist du ein mensch?', 'ungewöhnlicher datenverkehr'],
  ...['vérification', 'verifica', 'verificación', 'weryfikacja', 'verifizierung', 'проверка', '確認'],
  ...['accès refusé', 'vous avez été bloqué', 'un instant', 'êtes-vous un humain ?', 'activité inhabituelle'],
  ...['acceso denegado', '¿eres un robot?', '¿eres humano?', 'comprobando tu navegador'],
  ...['accesso negato', 'acesso negado', 'toegang geweigerd', 'ben je een robot?'],
  ...['dostęp zablokowany', 'odmowa dostępu', 'доступ ограничен', 'доступ запрещён', 'проверка браузера'],
  ...['アクセスが拒否されました', '访问被拒绝', '安全验证', 'erişim engellendi'],
]);

/** A number by which the site can find the refusal, or the visitor's own address. */
export const REFERENCE =
  /\b(?:ray id|reference(?: id)?|incident(?: id)?|support id|request id|vorgangsnummer|fehlercode|identifiant|referencia|codice)\s?[:#]?\s?#?[\da-f][\da-f.-]{2,}|\berror (?:code )?[:#]?\d{1,6}\b|\b(?:\d{1,3}\.){3}\d{1,3}\b/;

/** What pages have that are there to be read or bought. */
export const CONTENT =
  /<(?:article|nav|table|dl|video|audio)\b|itemprop=|og:type"? content="?(?:product|article|book|music|video)|application\/ld\+json/;

/** How those begin who tell what it is, and do not ask for it. */
export const EXPLAINING =
  /\bcaptchas? (?:is|was|stands for|ist|est|es|è|é) (?:an?|the|short for|eine?|une?|una|um|uma) \p{L}|\bcaptchas are \p{L}+ (?:tests?|puzzles?|tasks?|questions?|checks?)/u;
