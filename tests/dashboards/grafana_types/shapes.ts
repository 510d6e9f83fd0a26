// What a dashboard of ours may hold: Grafana's own types, with the kinds of panels that we use spelled out, since its own
// Panel takes anything for options and queries.
import type { Options as BarGaugeOptions } from './types/raw/composable/bargauge/panelcfg/x/types.gen';
import type { FieldConfig as HeatmapCustom, Options as HeatmapOptions } from './types/raw/composable/heatmap/panelcfg/x/types.gen';
import type { Options as StatOptions } from './types/raw/composable/stat/panelcfg/x/types.gen';
import type { FieldConfig as StatesCustom, Options as StatesOptions } from './types/raw/composable/statetimeline/panelcfg/x/types.gen';
import type { FieldConfig as TableCustom, Options as TableOptions } from './types/raw/composable/table/panelcfg/x/types.gen';
import type { Options as TextOptions } from './types/raw/composable/text/panelcfg/x/types.gen';
import type { FieldConfig as LinesCustom, Options as LinesOptions } from './types/raw/composable/timeseries/panelcfg/x/types.gen';
import type * as raw from './types/raw/dashboard/x/types.gen';

interface Source {
  type: 'prometheus' | 'jaeger' | 'grafana';
  uid: string;
}

// Grafana's packages hold no type of these two queries: these are what its plugins read.
interface PrometheusQuery {
  refId: string;
  datasource: Source;
  expr: string;
  legendFormat?: string;
  format?: 'time_series' | 'table' | 'heatmap';
  instant: boolean;
  range: boolean;
  exemplar?: boolean;
}
interface JaegerQuery {
  refId: string;
  datasource: Source;
  query: string;
  queryType?: 'search' | 'upload' | 'dependencyGraph';
  service?: string;
  operation?: string;
  tags?: string;
  minDuration?: string;
  maxDuration?: string;
  limit?: number;
}

interface Kind<Type extends string, Options, Custom>
  extends Omit<raw.Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'datasource' | 'gridPos' | 'id' | 'title'> {
  type: Type;
  id: number;
  title: string;
  gridPos: raw.GridPos;
  datasource: Source;
  options: Options;
  fieldConfig: {
    defaults: Omit<raw.FieldConfig, 'custom'> & { custom?: Custom };
    overrides: raw.FieldConfigSource['overrides'];
  };
  targets: Array<PrometheusQuery | JaegerQuery>;
}

// Defaults are filled in by Grafana, so that a dashboard need not say them.
type Part<T> = { [key in keyof T]?: T[key] extends object ? Part<T[key]> : T[key] };

type Panel =
  | Kind<'timeseries', Part<LinesOptions>, Part<LinesCustom>>
  | Kind<'stat', Part<StatOptions>, never>
  | Kind<'bargauge', Part<BarGaugeOptions>, never>
  | Kind<'heatmap', Part<HeatmapOptions>, Part<HeatmapCustom>>
  | Kind<'state-timeline', Part<StatesOptions>, Part<StatesCustom>>
  | Kind<'table', Part<TableOptions>, Part<TableCustom>>
  | Kind<'text', Part<TextOptions>, never>
  | (Omit<Kind<'traces', never, never>, 'options'> & { options?: Record<string, never> })
  | (raw.RowPanel & { gridPos: raw.GridPos });

// Read by the Prometheus plugin and not in Grafana's own type.
type Annotation = Omit<raw.AnnotationQuery, 'datasource'> & {
  datasource: Source;
  expr?: string;
  step?: string;
  titleFormat?: string;
};

// What Grafana shows in its list of variables; not in its own type either.
type Variable = raw.VariableModel & { definition?: string };

export type Board = Omit<raw.Dashboard, 'panels' | 'annotations' | 'templating' | 'uid' | 'title'> & {
  uid: string;
  title: string;
  panels: Panel[];
  annotations: { list: Annotation[] };
  templating: { list: Variable[] };
};
