/**
 * The client of a request, behind proxies that the configuration trusts.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import {
  type Address,
  type AddressRange,
  formatAddress,
  isInRange,
  parseAddress,
  parseHost,
  parseRange
} from "../domain/addresses.ts"

type Request = Pick<HttpServerRequest.HttpServerRequest, "headers" | "remoteAddress">
type Server = Pick<GatewayConfig["server"], "trusted_proxies">

const parsed = new WeakMap<Server["trusted_proxies"], ReadonlyArray<AddressRange>>()

const rangesOf = (entries: Server["trusted_proxies"]): ReadonlyArray<AddressRange> => {
  const known = parsed.get(entries)
  if (known !== undefined) return known
  const ranges = entries.flatMap((entry) => parseRange(entry.trim()) ?? [])
  parsed.set(entries, ranges)
  return ranges
}

const isTrusted = (address: Address, { trusted_proxies }: Server): boolean =>
  rangesOf(trusted_proxies).some((range) => isInRange(address, range))

/** The address that the connection of a request comes from. */
const peerOf = ({ remoteAddress }: Request): Address | undefined =>
  Option.isNone(remoteAddress) ? undefined : parseAddress(remoteAddress.value)

/**
 * The full address of the client, for throttling: the peer of the connection or, behind trusted proxies, the last entry of
 * `X-Forwarded-For` that is not a trusted proxy. The search stops at an entry that is not an address. `unknown` for a connection without an
 * address.
 */
export const clientAddress = (request: Request, server: Server): string => {
  const peer = peerOf(request)
  if (peer === undefined) return Option.getOrElse(request.remoteAddress, () => "unknown")
  let client = peer
  const forwarded = request.headers["x-forwarded-for"]
  if (forwarded !== undefined && server.trusted_proxies.length > 0) {
    for (const entry of forwarded.split(",").reverse()) {
      const before: Address | undefined = isTrusted(client, server) ? parseHost(entry) : undefined
      if (before === undefined) break
      client = before
    }
  }
  return formatAddress(client)
}

/** Whether a trusted proxy says that the client uses HTTPS. The first entry of `X-Forwarded-Proto` is the client's. */
export const isForwardedSecure = (request: Request, server: Server): boolean => {
  const [scheme = ""] = request.headers["x-forwarded-proto"]?.split(",") ?? []
  const peer = scheme.trim().toLowerCase() === "https" && server.trusted_proxies.length > 0
    ? peerOf(request)
    : undefined
  return peer !== undefined && isTrusted(peer, server)
}
