/** The sessions of the records of requests: which models each one asked for, and from when to when: of one node, and of all together. */
import type { Cooperative } from "../domain/stream/cooperative.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import { Matcher, type RequestFilter, type SearchContext } from "./search.ts"

/** The most sessions, those with the newest requests, and the most models of one. */
const [mostSessions, mostModels] = [1_000, 10]

/** A session of a key. Times are Unix milliseconds. */
export interface RecordedSession {
  readonly key: string
  readonly app: string
  readonly session: string
  /** The models that were asked for, the last one first. */
  readonly models: ReadonlyArray<string>
  /** When the first request that is kept began. */
  readonly from: number
  /** When the last one ended; of one that runs, when it began. */
  readonly to: number
  readonly requests: number
}

interface SessionCounts {
  readonly sessions: ReadonlyArray<RecordedSession>
  /** False if the search of a text ended early, or there are more sessions. */
  readonly complete: boolean
}

const joined = (one: RecordedSession, other: RecordedSession): RecordedSession => ({
  ...one,
  models: [...new Set([...one.models, ...other.models])].slice(0, mostModels),
  from: Math.min(one.from, other.from),
  to: Math.max(one.to, other.to),
  requests: one.requests + other.requests
})

/** Adds a session to others by key, app and session; true if there is no room for it. */
const addTo = (sessions: Map<string, RecordedSession>, session: RecordedSession): boolean => {
  const id = JSON.stringify([session.key, session.app, session.session])
  const known = sessions.get(id)
  if (known === undefined && sessions.size >= mostSessions) return true
  sessions.set(id, known === undefined ? session : joined(known, session))
  return false
}

/** The sessions of the records that match, which come newest first. */
export function* countSessions(
  records: Iterable<RequestRecord>,
  filter: RequestFilter,
  context: SearchContext
): Cooperative<SessionCounts> {
  const matcher = new Matcher(filter, context)
  const sessions = new Map<string, RecordedSession>()
  let complete = true
  for (const record of records) {
    if (matcher.slice.add(1)) yield matcher.slice.end()
    const { facts, startedAt } = record
    const { app, session } = facts.identity?.shown ?? {}
    if (session === undefined || matcher.missed(record) !== "all") continue
    if (matcher.isSpent) {
      complete = false
      break
    }
    if (!(yield* matcher.holds(record))) continue
    const isFull = addTo(sessions, {
      key: record.key,
      app: app ?? "",
      session,
      models: facts.requestedModel === undefined ? [] : [facts.requestedModel],
      from: startedAt,
      to: startedAt + (record.endedAt === undefined ? 0 : Math.round(record.duration)),
      requests: 1
    })
    if (isFull) complete = false
  }
  return { sessions: [...sessions.values()], complete }
}

/** The sessions of all nodes: a session may have been served by several. */
export const joinSessions = (all: ReadonlyArray<SessionCounts>): SessionCounts => {
  const sessions = new Map<string, RecordedSession>()
  const cut = all.flatMap((each) => each.sessions).map((session) => addTo(sessions, session))
  return { sessions: [...sessions.values()], complete: !cut.includes(true) && all.every(({ complete }) => complete) }
}
