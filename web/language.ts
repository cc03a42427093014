/** uPlot formats numbers for the language of the browser, which may be one that Intl refuses: `en-US@posix` without a locale. */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' });
}

export {};
