/**
 * What a server says that the caller's style has no place for: noted by its path in the server's reply, as `ignored.ts` notes the
 * fields of requests. The renderers of the styles show the rest.
 */
import { countedFields } from "../contracts/shared/usage.ts"
import type { Json } from "../domain/json.ts"
import type { ReplyExtra } from "../domain/ReplyEvent.ts"
import { type ExtraPlace, isFields } from "../domain/replyExtras.ts"
import { noteIgnored, replyPath } from "./ignored.ts"
import type { Request } from "./Request.ts"
import type { RequestStats } from "./RequestStats.ts"

/** What of a value has a place: all of it, what a function says, or some fields. */
type Shown = true | ((value: Json) => boolean) | { readonly [field: string]: Shown }

type ShownFields = { readonly [field: string]: Shown }

type ShownPlaces = { readonly [At in ExtraPlace]?: ShownFields }

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

const every = (isShown: (element: { readonly [field: string]: Json }) => boolean) => (value: Json): boolean =>
  Array.isArray(value) && value.every((element: Json) => isFields(element) && isShown(element))

/** Styles show reasoning as text. The sealed parts are kept for the calls that follow, of which the caller sees nothing. */
const isReadable = every(({ data, signature }) => data === undefined && (signature ?? null) === null)

const message = {
  refusal: true,
  images: true,
  annotations: every(({ type }) => type === "url_citation"),
  audio: { transcript: true },
  reasoning_details: isReadable
} satisfies ShownFields

const logprobs: ShownFields = { logprobs: { content: true } }

const ofOtherKinds: ShownFields = { audio_tokens: true, image_tokens: true, video_tokens: true, text_tokens: true }

/** By style: what it has a place for, of the fields of an OpenAI-compatible server. The chat style shows them all. */
const shown: ReadonlyMap<string | undefined, ShownPlaces> = new Map<string, ShownPlaces>([
  ["responses", { chunk: { service_tier: true }, choice: logprobs, message }],
  ["messages", { chunk: { service_tier: true }, message }],
  [
    "generate",
    {
      choice: logprobs,
      message: { ...message, audio: { transcript: true, data: true } },
      usage: { prompt_tokens_details: ofOtherKinds, completion_tokens_details: ofOtherKinds }
    }
  ]
])

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
  const places = shown.get(style)
  const path = paths[at]
  if (family !== "openai" || places === undefined || path === undefined) return
  note(value, [hints[at] ?? {}, places[at] ?? {}], path, stats)
}
