/**
 * A row of small bars: how much there was in each part of a time, and how much of it failed.
 */

export interface SparkBar {
  /** Says what the bar shows, on hover. */
  readonly title: string
  readonly all: number
  readonly failed: number
}

const height = 24

export const Spark = ({ bars, name }: { readonly bars: ReadonlyArray<SparkBar>; readonly name: string }) => {
  const most = Math.max(1, ...bars.map(({ all }) => all))
  /** What there is can be seen. */
  const sizeOf = (count: number) => count === 0 ? 0 : Math.max(1, (count / most) * height)
  return (
    <span class="histogram bars" role="img" aria-label={name}>
      <svg aria-hidden="true" viewBox={`0 0 ${bars.length} ${height}`} height={height} preserveAspectRatio="none">
        {bars.map(({ all, failed, title }, index) => (
          <g key={index}>
            <title>{title}</title>
            <rect class="back" x={index} y={0} width={1} height={height} />
            <rect class="ok" x={index + 0.1} y={height - sizeOf(all)} width={0.8} height={sizeOf(all)} />
            <rect class="failed" x={index + 0.1} y={height - sizeOf(failed)} width={0.8} height={sizeOf(failed)} />
          </g>
        ))}
      </svg>
    </span>
  )
}
