/**
 * A recorded request as a line for a shell: as it came, with its credential as the environment variable `GATEWAY_KEY`.
 */
import { shellJsonText, shellWord } from "../../../domain/printed.ts"
import { base } from "../../state/client.ts"
import { parsed } from "../../state/json.ts"
import type { RequestRecord } from "../../state/requests.ts"

/** What curl and the connection make themselves, and what proxies on the way have added. */
const notSent =
  /^(?:accept-encoding|connection|content-length|expect|forwarded|host|keep-alive|te|trailer|transfer-encoding|upgrade|via|cdn-loop|true-client-ip|cf-.*|sec-websocket-.*|x-forwarded-.*|x-real-ip)$/

/** The line; `undefined` for a request whose whole body is not in its record. */
export const curlOfRecord = (
  { bodies_kept, request, stream }: Pick<RequestRecord, "bodies_kept" | "request" | "stream">
): string | undefined => {
  const { body, headers, path, truncated } = request
  if (!bodies_kept || truncated) return undefined
  const lines = [
    `curl ${stream ? "-N " : ""}${shellWord(base + path)}`,
    // A request over a WebSocket is sent as a POST.
    ...body === "" ? [`-X ${shellWord(request.method)}`] : [],
    `-H "Authorization: Bearer $GATEWAY_KEY"`,
    ...Object.entries(headers).filter(([name]) => !notSent.test(name.toLowerCase()))
      .map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`),
    // Without a type of its own, curl would name one.
    ...body === "" || Object.keys(headers).some((name) => name.toLowerCase() === "content-type")
      ? []
      : [`-H "Content-Type:"`],
    ...body === "" ? [] : [`--data-raw ${parsed(body) === undefined ? shellWord(body) : shellJsonText(body)}`]
  ]
  return lines.join(" \\\n  ")
}
