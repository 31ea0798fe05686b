/**
 * Serves records of requests.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given } from "../../domain/givenText.ts"
import { jsonText } from "../../http/reply.ts"
import { makeLarge } from "../../http/WorkLimit.ts"
import type { RequestRecord } from "../../recordings/RequestRecord.ts"
import { Requests } from "../../recordings/Requests.ts"
import { type RequestSort, requestSorts } from "../../recordings/requestSorts.ts"
import { pageOf, sortedPageOf } from "../../recordings/search.ts"
import { logChange } from "../changes.ts"
import { clamp } from "../contract.ts"
import { adminHandlers } from "../handlers.ts"
import { CurrentOperator } from "../middleware.ts"
import { itemsOf, makeNodeItems, readItems } from "../nodeItems.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { askAll } from "../nodes/Query.ts"
import { readTime, wrongTime } from "../queryTime.ts"
import { AdminRequestsGroup, RequestItem } from "./Api.ts"
import { makeFacets, searchContext } from "./facets.ts"
import { makeHistogram } from "./histogram.ts"
import { makeSessions } from "./sessions.ts"
import { idOf, numberOf, viewDetail, viewItem, withoutBodies } from "./view.ts"

const defaultLimit = 50
const mostItems = 200

const unknown = gatewayError(
  "not_found",
  "There is no record of this request; it may have been pushed out by later ones"
)

/** The filters of a query as texts, without empty ones. Times become Unix milliseconds. */
const readFilter = (
  query: { readonly [name: string]: string | number | undefined }
): Result.Result<{ readonly [name: string]: string }, GatewayError> => {
  const filter: { [name: string]: string } = {}
  for (const [name, value] of Object.entries(query)) {
    const text = given(value === undefined ? value : String(value))
    if (text !== undefined) filter[name] = text
  }
  for (const name of ["from", "to"]) {
    const text = filter[name]
    if (text === undefined) continue
    const time = readTime(text)
    if (time === undefined) return Result.fail(wrongTime(name))
    filter[name] = String(time)
  }
  const { from, to } = filter
  return from !== undefined && to !== undefined && Number(from) >= Number(to)
    ? Result.fail(invalidRequest("from must be before to", "from"))
    : Result.succeed(filter)
}

/** A search of texts would show a viewer, bit by bit, the bodies that a viewer may not read. */
const mayFilter = Effect.fnUntraced(function*({ text }: { readonly [name: string]: string }) {
  if (text !== undefined && (yield* CurrentOperator).role !== "admin") return yield* notForViewers
})

/** The order of a sorted list. */
const Order = Schema.Struct({ sort: Schema.Literals(requestSorts), order: Schema.Literals(["asc", "desc"]) })
type Order = typeof Order.Type

/** The place of a record in a list: its number, and its rank before it if the list is sorted. */
const Place = Schema.Union([Schema.Int, Schema.Tuple([Schema.Finite, Schema.Int])])
type Place = typeof Place.Type

const PageQuestion = Schema.fromJsonString(Schema.Struct({
  filter: Schema.Record(Schema.String, Schema.String),
  limit: Schema.Int,
  /** Sorted by a value instead of newest first. */
  by: Schema.optionalKey(Order),
  /** The place after which each node goes on; absent for the first page. A node without one has no more records. */
  before: Schema.optionalKey(Schema.Record(Schema.String, Place))
}))

const PageHead = Schema.fromJsonString(Schema.Struct({
  kept: Schema.Int,
  bytes: Schema.Int,
  /** There are older records. */
  more: Schema.Boolean,
  /** The place after which the node goes on. */
  next: Schema.optionalKey(Place)
}))

/** A cursor over several nodes: the place after which each of them goes on, and the order of a sorted list. */
const Cursor = Schema.fromJsonString(Schema.Struct({
  by: Schema.optionalKey(Order),
  at: Schema.Record(Schema.String, Place)
}))

/** The question to each node for a page. */
const pageKind = { name: "records", question: PageQuestion, head: PageHead, items: itemsOf(RequestItem) }

/** The question for a record by its id or by the request's id. The answer is JSON that an admin gets as it is. */
const recordQuery = { name: "record", question: Schema.String, answer: Schema.String }

/** The same question for a record without bodies. */
const outlineQuery = { name: "record without bodies", question: Schema.String, answer: Schema.String }

const [writeCursor, readCursor] = [Schema.encodeSync(Cursor), Schema.decodeUnknownOption(Cursor)]

/** The place before all records, for a node that has no record on the page yet. */
const first = { at: Number.MAX_VALUE, place: Number.MAX_SAFE_INTEGER }

/** The order of a sorted list; `undefined` for the newest first, which is the order in which records are kept. */
const orderOf = (sort: RequestSort = "started_at", order: Order["order"] = "desc"): Order | undefined =>
  sort === "started_at" && order === "desc" ? undefined : { sort, order }

const notForViewers = gatewayError("role_not_allowed", "The role viewer may not search the bodies of requests: text", {
  param: "text"
})

const textIsNewestFirst = invalidRequest("a search of texts is newest first: leave out sort and order, or text", "sort")

const notACursor = invalidRequest("cursor is not a cursor of this list", "cursor")

export const AdminRequestsHandlers = adminHandlers(AdminRequestsGroup, function*() {
  const requests = yield* Requests
  const store = yield* ConfigStore
  const nodes = yield* makeNodeItems
  const self = yield* Nodes
  const facets = yield* makeFacets
  const histogram = yield* makeHistogram
  const sessions = yield* makeSessions
  const known = yield* searchContext

  /** The place after which each node goes on. Without a shared store the cursor of a list that is newest first is the id of a record. */
  const readBefore = (cursor: string, by: Order | undefined): { readonly [node: string]: Place } | undefined => {
    if (nodes.node() === undefined && by === undefined) {
      const number = numberOf(cursor)
      return number === undefined ? undefined : { [self.id]: number }
    }
    const read = Option.getOrUndefined(readCursor(Buffer.from(cursor, "base64url").toString("utf8")))
    if (read === undefined || read.by?.sort !== by?.sort || read.by?.order !== by?.order) return undefined
    const isSorted = by !== undefined
    return Object.values(read.at).every((place) => Array.isArray(place) === isSorted) ? read.at : undefined
  }

  const context = () => ({ node: nodes.node(), ...known() })

  const placed = (record: RequestRecord, at: number) => ({
    at,
    place: record.number,
    value: viewItem(record, context())
  })
  const headOf = (next: Place | undefined) => ({
    ...requests.status(),
    more: next !== undefined,
    ...(next === undefined ? {} : { next })
  })

  const merged = nodes.merged(pageKind, ({ before, by, filter, limit }) => {
    const from = before?.[self.id]
    if (by === undefined) {
      const records = requests.older(before === undefined ? undefined : typeof from === "number" ? from : 0)
      return Effect.map(runCooperatively(pageOf(records, limit, filter, context())), ({ next, records }) => ({
        head: headOf(next),
        items: records.map((record) => placed(record, record.startedAt))
      }))
    }
    // A node without a place has no more records.
    const records = before !== undefined && from === undefined ? [] : requests.older(undefined)
    const after = typeof from === "object" ? from : undefined
    return Effect.map(
      runCooperatively(sortedPageOf(records, limit, filter, by, after, context())),
      ({ next, records }) => ({
        head: headOf(next),
        items: records.map(({ place: [rank], record }) => placed(record, rank))
      })
    )
  })

  /** The record of this node by its id or by the request's id. */
  const ownRecord = (id: string): Effect.Effect<RequestRecord, GatewayError> =>
    Effect.suspend(() => {
      const number = numberOf(id)
      const record = (number === undefined ? undefined : requests.numbered(number)) ?? requests.named(id)
      return record === undefined ? Effect.fail(unknown) : Effect.succeed(record)
    })
  /** A record as JSON. Its bodies are in memory as what is kept, and twice as text. */
  const ownDetail = (id: string) =>
    Effect.flatMap(ownRecord(id), (record) =>
      makeLarge(
        2 * record.heldBytes,
        Effect.map(runCooperatively(viewDetail(record, context())), (shown) => JSON.stringify(shown))
      ))
  /** The same for an operator who may not read bodies. */
  const ownOutline = (id: string) =>
    Effect.flatMap(ownRecord(id), (record) =>
      Effect.map(
        runCooperatively(viewDetail(record, context(), record.withoutBodies)),
        (shown) => JSON.stringify(withoutBodies(shown))
      ))
  const byRole = {
    admin: { find: nodes.one(recordQuery, ownDetail), ask: askAll(nodes.peers, recordQuery) },
    viewer: { find: nodes.one(outlineQuery, ownOutline), ask: askAll(nodes.peers, outlineQuery) }
  }
  const clear = nodes.everywhere("clear records", Effect.sync(() => requests.clear()))

  return {
    list: Effect.fnUntraced(function*({ query }) {
      const { cursor, limit: wanted, order, sort, ...filters } = query
      const filter = yield* Effect.fromResult(readFilter(filters))
      yield* mayFilter(filter)
      const by = orderOf(sort === "" ? undefined : sort, order === "" ? undefined : order)
      if (by !== undefined && filter["text"] !== undefined) return yield* textIsNewestFirst
      const before = given(cursor) === undefined ? undefined : readBefore(given(cursor)!, by)
      if (given(cursor) !== undefined && before === undefined) return yield* notACursor
      const limit = clamp(wanted, defaultLimit, mostItems)
      const { heads, items, missing } = yield* merged({
        filter,
        limit,
        ...(by === undefined ? {} : { by }),
        ...(before === undefined ? {} : { before })
      })
      const shown = items.slice(0, limit)
      const placeOf = ({ at, place }: { readonly at: number; readonly place: number }): Place =>
        by === undefined ? place : [at, place]
      const next: { [node: string]: Place } = {}
      const sums = { kept: 0, bytes: 0 }
      for (const [node, { bytes, kept, more, next: goesOn }] of heads) {
        sums.kept += kept
        sums.bytes += bytes
        const last = shown.findLast((item) => item.node === node)
        const isCut = items.some((item, i) => i >= limit && item.node === node)
        // A node whose records are all on the page may have looked at more of them.
        const place = isCut ? undefined : goesOn
        if (more || isCut) {
          next[node] = place ?? (last === undefined ? before?.[node] ?? placeOf(first) : placeOf(last))
        }
      }
      const { enabled, limit: most, max_total_bytes } = store.now().requests
      const { unread, values } = readItems(shown)
      const isEnd = Object.keys(next).length === 0
      return {
        enabled,
        limit: most,
        ...sums,
        max_total_bytes,
        items: values,
        next_cursor: isEnd
          ? null
          : nodes.node() === undefined && typeof next[self.id] === "number"
          ? idOf(Number(next[self.id]))
          : Buffer.from(writeCursor({ ...(by === undefined ? {} : { by }), at: next })).toString("base64url"),
        ...nodes.missingNodes([...missing, ...unread])
      }
    }),
    facets: Effect.fnUntraced(function*({ query }) {
      const filter = yield* Effect.fromResult(readFilter(query))
      yield* mayFilter(filter)
      const { missing, ...counted } = yield* facets(filter)
      return { ...counted, ...nodes.missingNodes(missing) }
    }),
    histogram: Effect.fnUntraced(function*({ query }) {
      const filter = yield* Effect.fromResult(readFilter(query))
      yield* mayFilter(filter)
      const { missing, ...counted } = yield* histogram(filter)
      return { ...counted, ...nodes.missingNodes(missing) }
    }),
    sessions: Effect.fnUntraced(function*({ query }) {
      const filter = yield* Effect.fromResult(readFilter(query))
      yield* mayFilter(filter)
      const { missing, ...counted } = yield* sessions(filter)
      return { ...counted, ...nodes.missingNodes(missing) }
    }),
    get: Effect.fnUntraced(function*({ params: { id } }) {
      const { ask, find } = byRole[(yield* CurrentOperator).role]
      const found = yield* Effect.result(find(id, (own) => own))
      if (Result.isSuccess(found)) return found.success === undefined ? yield* unknown : jsonText(found.success)
      if (nodes.elsewhere(id) !== undefined || found.failure !== unknown) return yield* found.failure
      // The request's id does not name its node.
      const { answers } = yield* ask(id)
      for (const [, text] of answers) return jsonText(text)
      return yield* unknown
    }),
    clear: () =>
      clear.pipe(
        Effect.tap(logChange("the records of requests were cleared")),
        Effect.map((missing) => ({ success: true, ...missing }))
      )
  }
})
