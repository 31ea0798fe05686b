/**
 * Serves usage. Replies may have many rows: JSON is written in slices, CSV as the client reads it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { forEachCooperatively } from "../../config/json.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { jsonText } from "../../http/reply.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminUsageGroup } from "./Api.ts"
import { labelsOf, type QueryTexts, readQuery, type RowLimits, withIds } from "./readQuery.ts"
import { csvHeader, csvRow, namesOf, viewMeasures, viewRow } from "./rows.ts"

const jsonRows: RowLimits = { most: 10_000, fallback: 1000 }
const csvRows: RowLimits = { most: 100_000, fallback: 100_000 }

/** The cost of writing a row, in characters of `forEachCooperatively`. */
const rowWeight = 1024
/** CSV rows of one chunk. */
const rowsInPiece = 256

export const AdminUsageHandlers = adminHandlers(AdminUsageGroup, function*() {
  const config = yield* ConfigStore
  const store = yield* UsageStore

  const ask = Effect.fnUntraced(function*(texts: QueryTexts, rows: RowLimits) {
    const names = yield* namesOf(yield* config.current)
    const read = yield* Effect.fromResult(readQuery(texts, yield* Clock.currentTimeMillis, rows))
    const query = {
      ...read,
      only: yield* Effect.fromResult(withIds(texts, read.only, names)),
      labels: { of: names.label, only: yield* Effect.fromResult(labelsOf(texts, names)) }
    }
    return { query, report: yield* store.query(query), names }
  })

  return {
    query: Effect.fnUntraced(function*({ query: texts }) {
      const { names, query, report } = yield* ask(texts, jsonRows)
      const rows: Array<string> = []
      yield* forEachCooperatively(report.rows, (row) => {
        rows.push(JSON.stringify(viewRow(query.by, row, names)))
        return rowWeight
      })
      const head = {
        from: formatTimestamp(query.from),
        to: formatTimestamp(query.to),
        by: query.by,
        zone: query.zone,
        utc_days_before: query.utcDaysBefore === null ? null : formatTimestamp(query.utcDaysBefore),
        currency: names.currency
      }
      const tail = {
        totals: viewMeasures(report.totals),
        truncated: report.truncated,
        store: yield* store.status
      }
      const text = `${JSON.stringify(head).slice(0, -1)},"rows":[${rows.join(",")}],${JSON.stringify(tail).slice(1)}`
      return jsonText(text)
    }),
    csv: Effect.fnUntraced(function*({ query: texts }) {
      const { names, query, report } = yield* ask(texts, csvRows)
      const { rows, totals, truncated } = report
      const pieces = Stream.fromIterable(rows).pipe(
        Stream.rechunk(rowsInPiece),
        Stream.mapArray((piece) => [piece.map((row) => csvRow(query.by, row, names)).join("")])
      )
      const lines = Stream.concat(Stream.succeed(csvHeader(query.by, totals)), pieces)
      return HttpServerResponse.stream(Stream.encodeText(lines), {
        contentType: "text/csv; charset=utf-8",
        headers: {
          "content-disposition": `attachment; filename="usage.csv"`,
          ...(truncated ? { "x-truncated": "true" } : {})
        }
      })
    })
  }
})
