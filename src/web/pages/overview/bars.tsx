/**
 * What strips of columns are made of: bars, latencies on a scale, and the levels of the scale.
 */
import { duration } from "../../parts/format.ts"
import { heightOf, type latencyScale } from "./hour.ts"

type Scale = NonNullable<ReturnType<typeof latencyScale>>

export const Bar = ({ kind, of, value }: { readonly kind: string; readonly value: number; readonly of: number }) =>
  value === 0 ? null : <span class={kind} style={{ height: `${heightOf(value, of)}%` }} />

/**
 * Latencies of a column: from p50 to p95 a band, and p50 a line; without p50 from 0 on. A band that the scale cuts has a mark, and may have
 * its number above.
 */
export const Times = ({ hasNumber, p50, p95, scale }: {
  readonly scale: Scale | undefined
  readonly p50: number | null
  readonly p95: number | null
  readonly hasNumber: boolean
}) => {
  if (p95 === null || scale === undefined) return null
  const [from, to] = [scale.heightAt(p50 ?? 0), scale.heightAt(p95)]
  const kind = `p95 ${p50 === null ? "" : "p50"} ${p95 > scale.top ? "cut" : ""}`
  return (
    <>
      <span class={kind} style={{ bottom: `${from}%`, height: `${to - from}%` }} />
      {hasNumber && <span class="above">{duration(p95)}</span>}
    </>
  )
}

/** The end of the scale, and the usual latency, as lines with their numbers. */
export const Levels = ({ scale }: { readonly scale: Scale | undefined }) =>
  scale === undefined ? null : (
    <span class="levels" aria-hidden="true">
      {[scale.top, scale.usual].map((ms) => (
        <span key={ms} style={{ bottom: `${scale.heightAt(ms)}%` }}>
          <span>{duration(ms)}</span>
        </span>
      ))}
    </span>
  )
