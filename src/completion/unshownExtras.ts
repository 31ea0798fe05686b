/**
 * What a server says that the caller's style has no place for: noted by its path in the server's reply, as `ignored.ts` notes the
 * fields of requests. The renderers of the styles show the rest.
 */
import type { Shown, ShownFields, ShownPlaces } from "../contracts/Contract.ts"
import { contractOfStyle } from "../contracts/contractOf.ts"
import { commonWords } from "../contracts/names.ts"
import { countedFields } from "../contracts/shared/usage.ts"
import type { Json } from "../domain/json.ts"
import type { ReplyExtra } from "../domain/ReplyEvent.ts"
import { type ExtraPlace, isFields } from "../domain/replyExtras.ts"
import { noteIgnored, replyPath } from "./ignored.ts"
import type { Request } from "./Request.ts"
import type { RequestStats } from "./RequestStats.ts"

/** Where the fields of each place are in the reply of an OpenAI-compatible server. */
const paths: { readonly [At in ExtraPlace]?: string } = {
  chunk: replyPath,
  choice: `${replyPath}.choices[0]`,
  message: `${replyPath}.choices[0].message`,
  usage: `${replyPath}.usage`
}

/** Fields without which no caller loses anything: they describe how the server worked, or repeat what the reply says elsewhere. */
const hints: ShownPlaces = {
  chunk: { system_fingerprint: true, timings: true, x_groq: true, time_info: true },
  choice: { stop_reason: true, matched_stop: true, native_finish_reason: true },
  message: { audio: { id: true, expires_at: true } },
  usage: {
    ...countedFields,
    prompt_cache_miss_tokens: true,
    queue_time: true,
    prompt_time: true,
    completion_time: true,
    total_time: true
  }
}

const saysNothing = (value: Json): boolean =>
  value === null || value === 0 || value === false || value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0)

/** Notes what of a value has no place. Goes as deep as the tables do, and looks at each field once. */
const note = (
  value: Json,
  places: ReadonlyArray<Shown | undefined>,
  path: string,
  stats: Pick<RequestStats, "ignored" | "ignoredMore">
): void => {
  if (saysNothing(value)) return
  const tables: Array<ShownFields> = []
  for (const place of places) {
    if (place === true || (typeof place === "function" && place(value))) return
    if (typeof place === "object") tables.push(place)
  }
  if (tables.length === 0 || !isFields(value)) return noteIgnored(stats, path)
  for (const name of Object.keys(value)) {
    note(
      value[name]!,
      tables.map((table) => Object.hasOwn(table, name) ? table[name] : undefined),
      `${path}.${name}`,
      stats
    )
  }
}

/** Notes the fields that the style of the request has no place for. */
export const noteUnshown = ({ at, family, value }: ReplyExtra, { stats, style }: Request): void => {
  const places = contractOfStyle(style)?.facts.shows
  const path = paths[at]
  if (family !== commonWords || places === undefined || places === "all" || path === undefined) return
  note(value, [hints[at] ?? {}, places[at] ?? {}], path, stats)
}
