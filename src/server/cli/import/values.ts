/**
 * Values that both mappings read in the same way: addresses, secrets and headers.
 */
import type * as Schema from "effect/Schema"
import { isProxySetting } from "../../../config/proxies.ts"
import type { Fields } from "./Report.ts"

/** An address in the form of the configuration, without a slash at its end; `undefined` if it is not an http or https URL. */
export const addressOf = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined
  url.hash = ""
  url.pathname = url.pathname.replace(/\/+$/, "")
  return url.search === "" ? url.href.replace(/\/$/, "") : url.href
}

/** A secret as it is written, in which `${` is no reference. */
export const literal = (secret: string): string => secret.replaceAll("${", () => "$${")

/** Reads a proxy, which may be `direct` or `none`. */
export const proxyOf = (fields: Fields, name: string): string | undefined => {
  const text = fields.text(name)
  if (text === undefined) return undefined
  const proxy = /^(?:direct|none)$/i.test(text) ? "direct" : text
  if (isProxySetting(proxy)) return literal(proxy)
  fields.report.leftOut(fields.at(name), "it is no http, https or socks5 address")
  return undefined
}

/** Reads headers, whose values `valueOf` reads; one that it leaves out it also reports. */
export const headersOf = (
  fields: Fields,
  name: string,
  valueOf: (text: string, place: string, header: string) => string | undefined
): { readonly [name: string]: string } => {
  const headers: Record<string, string> = {}
  for (const [header, value] of fields.object(name)?.rest() ?? []) {
    const place = `${fields.at(name)}.${header}`
    const text = textOf(value)
    if (text === undefined) fields.report.leftOut(place, "it is no text")
    const found = text === undefined ? undefined : valueOf(text, place, header)
    if (found !== undefined) headers[header] = found
  }
  return headers
}

const textOf = (value: Schema.Json): string | undefined =>
  typeof value === "string"
    ? value
    : typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : undefined

/** Why a name is left out. */
export const noWildcards = "names have no wildcards here: name each model"
