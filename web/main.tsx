import './language.ts';
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles.css';
import { loadAbout } from './about.ts';
import { App } from './app.tsx';
import { startLive } from './live.ts';

void loadAbout();
startLive();
render(<App />, document.getElementById('app')!);
