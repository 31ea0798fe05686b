/**
 * A row of small bars: how much there was in each part of a time, and how much of it failed.
 */

export interface SparkBar {
  /** Says what the bar shows, on hover. */
  readonly title?: string
  readonly all: number
  readonly failed?: number
}

const height = 24

/** `name` says what the row shows; without one it is for eyes alone. `most` is the value of the full height, by default the largest one. */
export const Spark = ({ bars, most: given, name }: {
  readonly bars: ReadonlyArray<SparkBar>
  readonly name?: string
  readonly most?: number
}) => {
  const most = given ?? (Math.max(0, ...bars.map(({ all }) => all)) || 1)
  /** What there is can be seen. */
  const sizeOf = (count: number) => count === 0 ? 0 : Math.max(1, (count / most) * height)
  return (
    <span
      class="histogram bars"
      {...name === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": name }}
    >
      <svg aria-hidden="true" viewBox={`0 0 ${bars.length} ${height}`} height={height} preserveAspectRatio="none">
        {bars.map(({ all, failed = 0, title }, index) => (
          <g key={index}>
            {title !== undefined && <title>{title}</title>}
            <rect class="back" x={index} y={0} width={1} height={height} />
            <rect class="ok" x={index + 0.1} y={height - sizeOf(all)} width={0.8} height={sizeOf(all)} />
            <rect class="failed" x={index + 0.1} y={height - sizeOf(failed)} width={0.8} height={sizeOf(failed)} />
          </g>
        ))}
      </svg>
    </span>
  )
}
