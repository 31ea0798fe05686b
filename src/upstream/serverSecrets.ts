/**
 * What the gateway knows of an upstream and its callers do not: hidden where the words of its server go to a caller.
 */
import * as Redacted from "effect/Redacted"
import { type Account, keyless } from "../config/Account.ts"
import type { GatewayConfig, UpstreamConfig } from "../config/GatewayConfig.ts"
import { KnownSecrets } from "../domain/hideSecrets.ts"
import { nationalMobile } from "../domain/identity.ts"
import { secretsIn, secretsOfProxy } from "./connection.ts"

/** A secret as it is, and the credential after its scheme. */
const withCredential = (value: string): ReadonlyArray<string> => {
  const found = /^[A-Za-z]+\s+(\S+)$/.exec(value.trim())
  return found === null ? [value] : [value, found[1]!]
}

const ofAccount = ({ email, identifier, mobile, password, proxy, token }: Account): ReadonlyArray<string> => [
  identifier,
  ...(email === undefined ? [] : [email.trim(), email.trim().toLowerCase()]),
  ...(mobile === undefined ? [] : [mobile, nationalMobile(mobile)]),
  ...(password === undefined ? [] : [Redacted.value(password)]),
  ...(token === undefined || Redacted.value(token) === keyless ? [] : withCredential(Redacted.value(token))),
  ...secretsOfProxy(proxy).map(Redacted.value)
]

/** An address as a server may write it. A host of one word may be an ordinary word, and is hidden with its port alone. */
const ofAddress = (address: string): ReadonlyArray<string> => {
  if (!URL.canParse(address)) return []
  const { host, hostname, origin } = new URL(address)
  return [address, origin, ...(host === hostname ? [] : [host]), ...(hostname.includes(".") ? [hostname] : [])]
}

const ofUpstream = ({ base_url, headers, proxy }: UpstreamConfig): ReadonlyArray<string> => [
  ...ofAddress(base_url),
  ...secretsIn(base_url).map(Redacted.value),
  ...headers.flatMap(({ value }) => withCredential(Redacted.value(value))),
  ...secretsOfProxy(proxy).map(Redacted.value)
]

/** By configuration, each with an entry for the upstreams whose errors callers got: as many as are configured at most. */
const known = new WeakMap<GatewayConfig, Map<string, KnownSecrets>>()

/** The secrets of an upstream and of all its accounts. */
export const secretsOfUpstream = (config: GatewayConfig, name: string): KnownSecrets => {
  const found = known.get(config) ?? new Map<string, KnownSecrets>()
  known.set(config, found)
  const upstream = config.upstreams.get(name)
  const secrets = found.get(name) ?? new KnownSecrets([
    ...(upstream === undefined ? [] : ofUpstream(upstream)),
    ...config.accounts.filter((account) => account.upstream === name).flatMap(ofAccount)
  ])
  found.set(name, secrets)
  return secrets
}
