/** The headers of an upstream's requests: its own, those of credentials and caches, and those of callers. Every fault has its place. */
import * as Redacted from "effect/Redacted"
import { isServer } from "../contracts/drivers.ts"
import { forwardRule } from "../domain/forwardedHeaders.ts"
import { type Fault, fault } from "./ConfigError.ts"
import type { UpstreamConfig, UpstreamHeader } from "./GatewayConfig.ts"
import { hidden, secretAt, type Variables } from "./references.ts"
import * as Groups from "./schema.ts"

/** What an upstream's entry says about headers. */
type Entry = Pick<
  typeof Groups.UpstreamGroup.Type,
  "credential" | "credential_header" | "driver" | "forward_headers" | "prompt_cache"
>

/** Headers that belong to the connection, to the proxy or to the driver. */
const ownHeaders = new Set(
  "host content-length transfer-encoding connection te upgrade expect content-type accept".split(" ")
)
const mostHeaderBytes = 8 * 1024
const sentByGateway = "is a header that the gateway sets itself"

/** Headers that a driver sends besides a credential. */
const driverHeaders = new Set(["anthropic-version", "anthropic-beta"])

/** Whose credential an upstream gets. Only servers have callers with logins of their own. */
export const toCredential = (
  { credential, driver }: Entry,
  place: string,
  faults: Array<Fault>
): UpstreamConfig["credential"] => {
  if (credential !== "account" && !isServer(driver)) {
    faults.push(fault(place, `must be account with the ${driver} driver`))
  }
  return credential
}

/** The header of an upstream's keys. */
export const toCredentialHeader = (
  { credential_header, driver }: Entry,
  place: string,
  faults: Array<Fault>
): string | undefined => {
  if (credential_header === undefined) return undefined
  const name = credential_header.trim().toLowerCase()
  const rule = !isServer(driver)
    ? `must be unset with the ${driver} driver`
    : driverHeaders.has(name)
    ? sentByGateway
    : headerRule(name, "")
  if (rule !== undefined) faults.push(fault(place, rule))
  return name
}

/** What an upstream does for its server's cache. The name of a cache takes the place of no other header. */
export const toPromptCache = (
  { credential_header, prompt_cache }: Entry,
  place: string,
  faults: Array<Fault>
): UpstreamConfig["prompt_cache"] => {
  const [, name] = /^header (.*)$/.exec(prompt_cache.key ?? "") ?? []
  if (name === undefined) return prompt_cache
  const lower = name.toLowerCase()
  if (
    forwardRule(lower) !== undefined || driverHeaders.has(lower) || lower === credential_header?.trim().toLowerCase()
  ) {
    faults.push(
      fault(
        `${place}.key`,
        "must name a header of its own: no credential, and no header of the connection, the body or the gateway"
      )
    )
  }
  return prompt_cache
}

/** The headers of callers that the server of an upstream gets too. */
export const toForwarded = (
  { driver, forward_headers }: Entry,
  place: string,
  faults: Array<Fault>
): ReadonlyArray<string> => {
  const patterns = forward_headers.map((pattern) => pattern.trim().toLowerCase())
  if (patterns.length > 0 && !isServer(driver)) faults.push(fault(place, `must be unset with the ${driver} driver`))
  if (patterns.length > Groups.mostHeaders) faults.push(fault(place, `must have at most ${Groups.mostHeaders} names`))
  for (const [index, pattern] of patterns.slice(0, Groups.mostHeaders).entries()) {
    const rule = forwardRule(pattern)
    if (rule !== undefined) faults.push(fault(`${place}[${index}]`, rule))
  }
  return patterns
}

const headerRule = (name: string, value: string): string | undefined => {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "must have the name of a header"
  if (ownHeaders.has(name.toLowerCase()) || /^proxy-/i.test(name)) return sentByGateway
  if (/[^\t -~\u00a0-\u00ff]/.test(value)) return "must contain Latin-1 characters without line breaks"
  return value.length + name.length > mostHeaderBytes ? `must have at most ${mostHeaderBytes} bytes` : undefined
}

export const toHeaders = (
  headers: Readonly<Record<string, string>>,
  place: string,
  variables: Variables,
  faults: Array<Fault>
): ReadonlyArray<UpstreamHeader> => {
  const entries = Object.entries(headers)
  if (entries.length > Groups.mostHeaders) faults.push(fault(place, `must have at most ${Groups.mostHeaders} headers`))
  const seen = new Set<string>()
  return entries.map(([name, text]) => {
    const value = secretAt(text, `${place}.${name}`, variables, faults)
    const rule = text === hidden
      ? "must be written with its value"
      : seen.has(name.toLowerCase())
      ? "is named twice, but for case"
      : headerRule(name, Redacted.value(value))
    if (rule !== undefined) faults.push(fault(`${place}.${name}`, rule))
    seen.add(name.toLowerCase())
    return { name, value }
  })
}
