import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { color, shownTheme } from '../theme.ts';

/** A line or area over time; uPlot draws it, and is told only what changes. */

interface Series {
  label: string;
  /** Name of a colour of the theme. */
  tone: string;
  values: (number | null)[];
  fill?: boolean;
  dash?: boolean;
  bars?: boolean;
}

interface ChartProps {
  label: string;
  /** Seconds since 1970. */
  times: number[];
  series: Series[];
  format: (value: number) => string;
  height?: number;
}

export function Chart({ label, times, series, format, height = 220 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = `${series.map(({ label: name, tone }) => `${name} ${tone}`).join()} ${shownTheme.value} ${height}`;

  useEffect(() => {
    const element = place.current!;
    const made = new uPlot(
      optionsOf(series, format, element.clientWidth, height),
      [times, ...series.map(({ values }) => values)],
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData([times, ...series.map(({ values }) => values)]);
  }, [times, series]);

  const last = series.map(({ label: name, values }) => {
    const value = values.findLast((one) => one !== null);
    return value == null ? `${name}: none` : `${name}: ${format(value)}`;
  });
  return <div class="chart" ref={place} role="img" aria-label={`${label}. ${last.join(', ')}`} />;
}

function optionsOf(
  series: Series[],
  format: ChartProps['format'],
  width: number,
  height: number,
): uPlot.Options {
  const axis = {
    stroke: color('text-dim'),
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
    grid: { stroke: color('grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height,
    padding: [10, 24, 0, 0],
    cursor: { y: false, points: { size: 7 } },
    legend: { live: true },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.12 : 1] } },
    axes: [
      { ...axis, space: 90, size: 28, values: timeValues },
      { ...axis, size: 58, gap: 6, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      { value: (_, at) => (at === null ? '–' : new Date(at * 1_000).toLocaleTimeString('en-GB')) },
      ...series.map(({ label, tone, fill, dash, bars }) => ({
        label,
        stroke: color(tone),
        width: 1.75,
        ...(fill ? { fill: gradient(color(tone)) } : {}),
        ...(dash ? { dash: [5, 4] } : {}),
        ...(bars ? { paths: uPlot.paths.bars!({ size: [0.8, 40] }) } : {}),
        points: { show: false },
        value: (plot: uPlot, value: number | null, at: number) => valueText(plot, value, at, format),
      })),
    ],
  };
}

/** Under the pointer; without one, the last that is known. */
function valueText(plot: uPlot, value: number | null, series: number, format: ChartProps['format']): string {
  const isPointed = plot.cursor?.idx != null;
  const shown = isPointed ? value : Array.from(plot.data[series] ?? []).findLast((one) => one != null);
  return shown == null ? '–' : format(shown);
}

const timeValues = (_: uPlot, ticks: number[], __: number, ___: number, step: number) =>
  ticks.map((tick) => {
    const date = new Date(tick * 1_000);
    const clock = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
    if (step < 60) return date.toLocaleTimeString('en-GB');
    return step >= 86_400 ? date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) : clock;
  });

function gradient(base: string): (plot: uPlot) => CanvasGradient | string {
  return (plot) => {
    const { top, height } = plot.bbox;
    if (!Number.isFinite(height) || height <= 0) return 'transparent';
    const fill = plot.ctx.createLinearGradient(0, top, 0, top + height);
    fill.addColorStop(0, `${base}55`);
    fill.addColorStop(1, `${base}05`);
    return fill;
  };
}
