/**
 * Decodes `webhooks`: where events are sent, by which secret they are signed, and which types each receives.
 * Every fault has its place; no message contains a secret, a header or an address.
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type NoticeType, noticeTypes, typesNamed } from "../domain/notices.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import type { WebhookConfig } from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "./json.ts"
import { hidden, secretAt, type Variables } from "./references.ts"
import { mostWebhooks, WebhookEntry, Webhooks } from "./schema.ts"
import { toHeaders } from "./upstreamHeaders.ts"
import { addressRule } from "./upstreams.ts"

const prefix = "whsec_"

/** Bytes of a key, by the standard. */
const [leastKey, mostKey] = [24, 64]

/** The key behind a secret; `undefined` for a text that is no secret. */
export const keyOfSecret = (secret: string): Uint8Array | undefined => {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : ""
  const key = Buffer.from(text, "base64")
  const isExact = /^[A-Za-z0-9+/]+={0,2}$/.test(text) &&
    key.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "")
  return isExact && key.length >= leastKey && key.length <= mostKey ? key : undefined
}

const toSecret = (
  text: string,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): Redacted.Redacted<string> => {
  if (text === hidden) {
    faults.push(fault(place, "must be written with its value"))
    return Redacted.make("")
  }
  const count = faults.length
  const secret = secretAt(text.trim(), place, variables, faults)
  if (faults.length === count && keyOfSecret(Redacted.value(secret)) === undefined) {
    faults.push(fault(place, `must be ${prefix} and Base64 of ${leastKey} to ${mostKey} bytes`))
  }
  return secret
}

const urlRule = (url: string): string | undefined => {
  const rule = addressRule(url)
  if (rule !== undefined) return rule
  return new URL(url).username + new URL(url).password === ""
    ? undefined
    : "must have no user information: set a header"
}

const decode = Schema.decodeUnknownResult(Webhooks)
const decodeEntry = Schema.decodeUnknownResult(WebhookEntry)

const allTypes: ReadonlySet<NoticeType> = typesNamed(Object.keys(noticeTypes))

/** Decodes `webhooks`; adds what is wrong to `faults`. */
export const decodeWebhooks = (
  raw: Schema.Json | undefined,
  variables: Variables,
  faults: Array<Fault>
): ReadonlyArray<WebhookConfig> => {
  if (raw === undefined) return []
  const decoded = decode(raw, { errors: "all" })
  const wrong = Result.isFailure(decoded) ? faultsOf(decoded.failure, ["webhooks"]) : []
  faults.push(...wrong)
  const names = new Set<string>()
  const toWebhook = (entry: typeof WebhookEntry.Type, index: number): WebhookConfig => {
    const place = `webhooks[${index}]`
    const { events, name, secret_previous } = entry
    if (names.has(name)) faults.push(fault(`${place}.name`, "is the name of another webhook"))
    names.add(name)
    const url = entry.url.trim()
    const rule = urlRule(url)
    if (rule !== undefined) faults.push(fault(`${place}.url`, rule))
    for (const [i, pattern] of (events ?? []).entries()) {
      if (typesNamed([pattern]).size === 0) faults.push(fault(`${place}.events[${i}]`, "names no event"))
    }
    const headers = toHeaders(entry.headers, `${place}.headers`, variables, faults)
    for (const header of headers) {
      if (/^webhook-/i.test(header.name)) {
        faults.push(fault(`${place}.headers.${header.name}`, "is a header that the gateway sets itself"))
      }
    }
    return {
      name,
      url,
      secret: toSecret(entry.secret, `${place}.secret`, variables, faults),
      secret_previous: secret_previous === undefined
        ? undefined
        : toSecret(secret_previous, `${place}.secret_previous`, variables, faults),
      headers,
      types: events === undefined ? allTypes : typesNamed(events)
    }
  }
  if (Result.isSuccess(decoded)) return decoded.success.map(toWebhook)
  // The faults of the other entries are shown together with those.
  for (const [index, entry] of Array.isArray(raw) ? raw.slice(0, mostWebhooks).entries() : []) {
    const alone = decodeEntry(entry)
    if (Result.isSuccess(alone)) toWebhook(alone.success, index)
  }
  return []
}

/** The entries of `webhooks` as the file has them. */
export const webhooksOf = (raw: RawConfig): ReadonlyArray<RawConfig> =>
  Array.isArray(raw["webhooks"]) ? raw["webhooks"].filter(isJsonObject) : []
