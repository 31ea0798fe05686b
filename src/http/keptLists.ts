/**
 * Lists of models as replies: each form is rendered once for a configuration and a set of models, and has a tag, by which a client asks whether
 * its own list is still the same.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { createHash } from "node:crypto"
import { jsonText } from "./reply.ts"
import type { ServedModels, Visible } from "./Serving.ts"

/** A list as it is sent. */
interface KeptText {
  readonly text: string
  readonly etag: string
}

type Forms = Map<string, KeptText>

/** For all models, with the forms for callers with and without a key apart; for those of a key by what it allows. */
interface OfConfig {
  readonly all: Forms
  readonly ofKeys: WeakMap<object, Forms>
}

/** A list goes with the models of its configuration, or with the rights of its key. */
const kept = new WeakMap<ServedModels, OfConfig>()

const keep = (text: string): KeptText => ({
  text,
  etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 27)}"`
})

/** The text of a form, which `render` makes at its first use. Names of forms are a closed list, so each map is small. */
export const keptText = (
  models: ServedModels,
  { allowed, hasKey }: Visible,
  form: string,
  render: () => string
): KeptText => {
  let ofConfig = kept.get(models)
  if (ofConfig === undefined) kept.set(models, ofConfig = { all: new Map(), ofKeys: new WeakMap() })
  let forms = allowed === undefined ? ofConfig.all : ofConfig.ofKeys.get(allowed)
  if (forms === undefined) ofConfig.ofKeys.set(allowed!, forms = new Map())
  const name = `${hasKey ? "keyed" : "public"} ${form}`
  const known = forms.get(name)
  if (known !== undefined) return known
  const made = keep(render())
  forms.set(name, made)
  return made
}

/** Whether a client has the text already (RFC 9110, 13.1.2: weak comparison). */
const hasText = (condition: string | undefined, etag: string): boolean =>
  condition !== undefined &&
  condition.split(",").some((each) => each.trim() === "*" || each.trim().replace(/^W\//, "") === etag)

/** The reply with a text, or 304 for a client that has it. */
export const taggedReply = (
  { headers }: HttpServerRequest.HttpServerRequest,
  { etag, text }: KeptText
): HttpServerResponse.HttpServerResponse =>
  hasText(headers["if-none-match"], etag)
    ? HttpServerResponse.empty({ status: 304, headers: { etag } })
    : jsonText(text, { etag })

/** Like `taggedReply`, for a text that is not kept. */
export const taggedText = (request: HttpServerRequest.HttpServerRequest, text: string) =>
  taggedReply(request, keep(text))
