/**
 * A row of small bars: how much there was in each part of a time, and how much of it failed.
 */
import { moveInStrip } from "./strip.ts"

export interface SparkBar {
  /** Says what the bar shows. */
  readonly title: string
  readonly all: number
  readonly failed?: number
}

const height = 24

/** What each bar of a picture shows, in words: under the pointer, below what a finger touches, and on focus. Arrows move between them. */
export const Bins = ({ titles }: { readonly titles: ReadonlyArray<string> }) => (
  <span class="bins">
    {titles.map((title, index) => (
      <span
        key={index}
        role="img"
        aria-label={title}
        title={title}
        tabIndex={index === titles.length - 1 ? 0 : -1}
      />
    ))}
  </span>
)

/** `name` says what the row shows. `most` is the value of the full height, by default the largest one. */
export const Spark = ({ bars, most: given, name }: {
  readonly bars: ReadonlyArray<SparkBar>
  readonly name: string
  readonly most?: number
}) => {
  const most = given ?? (Math.max(0, ...bars.map(({ all }) => all)) || 1)
  /** What there is can be seen. */
  const sizeOf = (count: number) => count === 0 ? 0 : Math.max(1, (count / most) * height)
  return (
    <span class="histogram bars" role="group" aria-label={name} onKeyDown={moveInStrip}>
      <svg aria-hidden="true" viewBox={`0 0 ${bars.length} ${height}`} height={height} preserveAspectRatio="none">
        {bars.map(({ all, failed = 0 }, index) => (
          <g key={index}>
            <rect class="ok" x={index + 0.1} y={height - sizeOf(all)} width={0.8} height={sizeOf(all)} />
            <rect class="failed" x={index + 0.1} y={height - sizeOf(failed)} width={0.8} height={sizeOf(failed)} />
          </g>
        ))}
      </svg>
      <Bins titles={bars.map(({ title }) => title)} />
    </span>
  )
}
