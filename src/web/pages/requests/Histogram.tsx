/**
 * The requests of a list by the time at which they began. A range is chosen by dragging over the bars; the filter by time does the same by
 * keyboard, which moves from bar to bar.
 */
import { useRef, useState } from "preact/hooks"
import { compact, dayOf, duration, minuteOfDay, number, timeOfDay, when } from "../../parts/format.ts"
import { Bins } from "../../parts/Spark.tsx"
import { moveInStrip } from "../../parts/strip.ts"
import type { RequestHistogram } from "../../state/requests.ts"
import { useTexts } from "../../state/texts.ts"

type Bucket = RequestHistogram["buckets"][number]

/** The parts of a bar from its foot on. */
const parts = ["failed", "cancelled", "ok", "open"] as const

const height = 48

/** A drag of fewer pixels is a click. */
const leastDrag = 4

/** Places of the times between both ends, as shares of the width. */
const between = [0.25, 0.5, 0.75] as const

const countOf = (bucket: Bucket): number => parts.reduce((sum, part) => sum + bucket[part], 0)

/** The range that is dragged over: whole buckets, in Unix milliseconds. `from` and `to` are shares of the width. */
export const rangeOf = (
  { bucket_ms, buckets }: Pick<RequestHistogram, "bucket_ms" | "buckets">,
  from: number,
  to: number
): readonly [from: number, to: number] => {
  const start = buckets[0]?.at ?? 0
  const place = (share: number) => Math.max(0, Math.min(buckets.length, share * buckets.length))
  const [first, last] = [Math.floor(place(Math.min(from, to))), Math.ceil(place(Math.max(from, to)))]
  return [start + first * bucket_ms, start + Math.max(first + 1, last) * bucket_ms]
}

/** The place of the bars while they are read, so that the list below them stays where it is. */
export const HistogramPlace = () => (
  <div class="histogram" aria-hidden="true">
    <div class="strip">
      <svg height={height} />
    </div>
    <p class="times hint">{"\u00a0"}</p>
  </div>
)

/** A time below the bars: its day where that is another one than `before`. */
const tickOf = (at: number, before: number, length: number): string =>
  `${dayOf(at) === dayOf(before) ? "" : `${dayOf(at)} `}${length < 5 * 60_000 ? timeOfDay(at) : minuteOfDay(at)}`

const Times = ({ end, isNow, start }: {
  readonly start: number
  readonly end: number
  readonly isNow: boolean
}) => {
  const t = useTexts().requests
  const length = end - start
  return (
    <p class="times hint" aria-hidden="true">
      <span>{tickOf(start, Date.now(), length)}</span>
      {between.map((share) => (
        <span key={share} style={{ left: `${share * 100}%` }}>{tickOf(start + share * length, start, length)}</span>
      ))}
      <span>{isNow ? t.now : tickOf(end, start, length)}</span>
    </p>
  )
}

export const Histogram = ({ busy, isNow, of, onRange }: {
  readonly of: RequestHistogram
  /** It ends now. */
  readonly isNow: boolean
  /** It is of other filters. */
  readonly busy: boolean
  readonly onRange: (from: number, to: number) => void
}) => {
  const t = useTexts().requests
  const box = useRef<HTMLDivElement>(null)
  /** Where the drag began, as a share of the width; `undefined` without one. */
  const began = useRef<number | undefined>(undefined)
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number }>()
  const { bucket_ms, buckets } = of
  const most = Math.max(1, ...buckets.map(countOf))
  const slowest = Math.max(0, ...buckets.map(({ p95_ms }) => p95_ms ?? 0))
  const total = buckets.reduce((sum, bucket) => sum + countOf(bucket), 0)
  const failed = buckets.reduce((sum, bucket) => sum + bucket.failed, 0)
  const [start, end] = [buckets[0]?.at ?? 0, (buckets.at(-1)?.at ?? 0) + bucket_ms]
  const shareAt = (event: PointerEvent): number => {
    const { left, width } = box.current!.getBoundingClientRect()
    return Math.max(0, Math.min(1, (event.clientX - left) / width))
  }
  const stop = () => {
    began.current = undefined
    setDrag(undefined)
  }
  return (
    <div class="histogram" aria-busy={busy}>
      <p class="levels-of hint" aria-hidden="true">
        <span>{compact(most)}</span>
        <span>0</span>
      </p>
      <div
        ref={box}
        class="strip"
        role="group"
        aria-label={[
          t.histogram(number(total), number(failed), when(start), when(end)),
          t.mostInBar(number(most)),
          ...slowest === 0 ? [] : [t.slowestBar(duration(slowest))]
        ].join(", ")}
        onKeyDown={moveInStrip}
        onPointerDown={(event) => {
          if (event.button === 0) began.current = shareAt(event)
        }}
        onPointerMove={(event) => {
          if (began.current === undefined) return
          // Only a drag leaves the bars: a touch is of the bar that it is on.
          event.currentTarget.setPointerCapture(event.pointerId)
          setDrag({ from: began.current, to: shareAt(event) })
        }}
        onPointerCancel={stop}
        onPointerUp={(event) => {
          const from = began.current
          stop()
          if (from === undefined) return
          const to = shareAt(event)
          if (Math.abs(to - from) * event.currentTarget.clientWidth >= leastDrag) onRange(...rangeOf(of, from, to))
        }}
      >
        <svg aria-hidden="true" viewBox={`0 0 ${buckets.length} ${height}`} height={height} preserveAspectRatio="none">
          {buckets.map((bucket, index) => {
            let top = height
            return (
              <g key={bucket.at}>
                {parts.map((part) => {
                  if (bucket[part] === 0) return null
                  const size = Math.max(1, (bucket[part] / most) * height)
                  top -= size
                  return <rect key={part} class={part} x={index + 0.1} y={top} width={0.8} height={size} />
                })}
              </g>
            )
          })}
          {slowest > 0 && (
            <path
              class="p95"
              // A line without a length is a round dot, whatever the picture is stretched by.
              d={buckets.map(({ p95_ms }, index) =>
                p95_ms === null ? "" : `M${index + 0.5},${3 + (1 - p95_ms / slowest) * (height - 6)}h0`
              ).join("")}
            />
          )}
        </svg>
        <Bins
          titles={buckets.map((bucket) =>
            `${
              t.bucket(
                `${when(bucket.at)} – ${when(bucket.at + bucket_ms)}`,
                number(countOf(bucket)),
                number(bucket.failed),
                bucket.p95_ms === null ? undefined : duration(bucket.p95_ms)
              )
            }\n${t.dragHint}`
          )}
        />
        {drag !== undefined && (
          <span
            class="dragged"
            style={{
              left: `${Math.min(drag.from, drag.to) * 100}%`,
              width: `${Math.abs(drag.to - drag.from) * 100}%`
            }}
          />
        )}
      </div>
      {slowest > 0 && (
        <p class="levels-of of-p95 hint" aria-hidden="true">
          <span>{duration(slowest)}</span>
          <span>{t.p95}</span>
        </p>
      )}
      <Times start={start} end={end} isNow={isNow} />
    </div>
  )
}
