/**
 * Credentials that were right of late, by the source that they came from: these have a lane of their own. They are kept as
 * hashes under a secret key, for a day from when they were right.
 */

/** Milliseconds that a credential is remembered. */
const day = 86_400_000
/** A credential that is right again is remembered anew where it was not within this time, in milliseconds. */
const hour = 3_600_000
/** Sources that are remembered; those that were right longest ago are forgotten first. */
const mostSources = 10_000
/** Credentials of one source. */
const mostOfSource = 16

/** What was right from where; all names are hashes. */
export class Rights {
  /** In the order in which they were right, roughly: the times until which credentials count, by source and hash. */
  readonly #sources = new Map<string, Map<string, number>>()

  /** Whether anything was right from a source. */
  knows(source: string, now: number): boolean {
    for (const until of this.#sources.get(source)?.values() ?? []) if (until > now) return true
    return false
  }

  has(source: string, hash: string, now: number): boolean {
    return (this.#sources.get(source)?.get(hash) ?? 0) > now
  }

  /** Remembers a credential that is right; gives until when, or `undefined` where it is remembered for long enough. */
  add(source: string, hash: string, now: number): number | undefined {
    if (this.has(source, hash, now + day - hour)) return undefined
    const until = now + day
    this.take(source, hash, until)
    return until
  }

  /** Takes what is remembered elsewhere. */
  take(source: string, hash: string, until: number): void {
    const known = this.#sources.get(source) ?? new Map<string, number>()
    const latest = Math.max(until, known.get(hash) ?? 0)
    known.delete(hash)
    known.set(hash, latest)
    if (known.size > mostOfSource) known.delete(known.keys().next().value!)
    this.#sources.delete(source)
    this.#sources.set(source, known)
    if (this.#sources.size > mostSources) this.#sources.delete(this.#sources.keys().next().value!)
  }

  /** All that count at a time. */
  all(now: number): ReadonlyArray<readonly [source: string, hash: string, until: number]> {
    return [...this.#sources].flatMap(([source, known]) =>
      [...known].flatMap(([hash, until]) => until > now ? [[source, hash, until] as const] : [])
    )
  }
}
