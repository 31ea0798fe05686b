/** Requests of clients as they go over the wire: the vendors' SDKs write those of an `Ask`, and others are fields over the shortest request. */
import { businessKey } from "../../support/gateway.ts"
import { plainRequests } from "../../support/plainRequests.ts"
import type { Way } from "../../support/sameReply.ts"
import { type Ask, styleClients, type StyleName } from "../../support/styleClients.ts"

export const base = "http://gateway"

type Fields = { readonly [field: string]: unknown }

export const jsonRequest = (
  path: string,
  body: unknown,
  { headers = {}, method = "POST" }: { readonly headers?: Record<string, string>; readonly method?: string } = {}
): Request =>
  new Request(base + path, {
    method,
    headers: {
      authorization: `Bearer ${businessKey}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })

/** The shortest request of a style, with these fields over it. A field that is null is left out. */
export const withFields = (
  style: StyleName,
  fields: Fields,
  way: Way = fields["stream"] === true ? "streamed" : "whole"
): Request => {
  const { body, path } = plainRequests[style]
  const { model = "upstream-chat", ...rest } = fields
  const isGenerate = style === "generate"
  const all = { ...body(way === "streamed"), ...(isGenerate ? fields : { model, ...rest }) }
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
  return jsonRequest(path(way === "streamed"), given)
}

/** The request of the vendor's SDK. */
export const asked = async (style: StyleName, way: Way, ask: Ask, apiKey: string = businessKey): Promise<Request> => {
  const seen: Array<Request> = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    seen.push(new Request(input, init))
    return Promise.reject(new Error("The request is seen"))
  }
  // The SDK fails by the answer that it does not get.
  await styleClients(base, { apiKey, fetch })[style][way](ask).catch(() => undefined)
  if (seen[0] === undefined) throw new Error(`The SDK of ${style} sent nothing`)
  return seen[0]
}
