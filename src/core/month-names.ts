/** Names of months in English, German, French, Spanish, Italian, Portuguese and Dutch, whole and as cut short. */

const NAMES = [
  'january jan januar jänner janvier janv enero ene gennaio gen janeiro januari',
  'february feb februar februar febr février févr fév febrero febbraio fevereiro fev februari',
  'march mar märz mrz mär mars marzo março maart mrt',
  'april apr avril avr abril abr aprile',
  'may mai mayo maggio mag maio mei',
  'june jun juni juin junio giugno giu junho',
  'july jul juli juillet juil julio luglio lug julho',
  'august aug août agosto ago augustus',
  'september sep sept septembre septiembre settembre set setembro',
  'october oct oktober okt octobre octubre ottobre ott outubro out',
  'november nov novembre noviembre novembro',
  'december dec dezember dez décembre déc diciembre dic dicembre dezembro',
];

const MONTHS = new Map<string, number>();
NAMES.forEach((names, index) => {
  for (const name of names.split(' ')) {
    MONTHS.set(name, index + 1);
    // Sites leave accents out.
    MONTHS.set(name.normalize('NFD').replace(/\p{M}/gu, ''), index + 1);
  }
});

/** 1 to 12, or null. */
export function monthOf(name: string): number | null {
  return MONTHS.get(name.toLowerCase()) ?? null;
}
