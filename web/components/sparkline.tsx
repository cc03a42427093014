/** The shape of some numbers, without axes. */
export function Sparkline({
  values,
  label,
  tone = 'accent',
}: {
  values: readonly number[];
  label: string;
  tone?: string;
}) {
  if (values.length < 2) return <span class="sparkline" />;
  const max = Math.max(...values, 1e-9);
  const x = (at: number) => ((at / (values.length - 1)) * 100).toFixed(2);
  const y = (value: number) => (26 - (value / max) * 24).toFixed(2);
  const line = values.map((value, at) => `${at === 0 ? 'M' : 'L'}${x(at)} ${y(value)}`).join('');
  return (
    <svg
      class={`sparkline spark-${tone}`}
      viewBox="0 0 100 28"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="spark-area" d={`${line}L100 28L0 28Z`} />
      <path class="spark-line" d={line} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
