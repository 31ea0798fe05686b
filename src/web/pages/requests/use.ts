/**
 * What can be done with a recorded request: as a line for a shell, and in the playground.
 */
import { openConversation } from "../../playground/state.ts"
import { copyText, report } from "../../state/actions.ts"
import { failureText } from "../../state/failure.ts"
import { readRequest, type RequestRecord } from "../../state/requests.ts"
import { go } from "../../state/route.ts"
import { allTexts } from "../../state/texts.ts"
import { curlOfRecord } from "./curl.ts"
import { asConversation } from "./toPlayground.ts"

/** Copies a request as a line for a shell. */
export const copyAsCurl = async (record: RequestRecord): Promise<void> => {
  const t = allTexts().requests
  const line = curlOfRecord(record)
  return line === undefined ? report(t.noCurl, true) : copyText(line, t.copied(t.curl))
}

/** Opens a request in the playground. */
export const openRecord = (record: RequestRecord): void => {
  const { form, turns } = asConversation(record)
  openConversation(form, turns)
  go("playground")
}

/** Reads a request for `use`, and reports why it has no record. */
const withRecord = async (id: string, use: (record: RequestRecord) => unknown): Promise<void> => {
  const texts = allTexts()
  try {
    const record = await readRequest(id, new AbortController().signal)
    if (record === undefined) return report(texts.inspector.gone, true)
    await use(record)
  } catch (reason) {
    report(failureText(reason), true)
  }
}

export const copyCurl = (id: string): Promise<void> => withRecord(id, copyAsCurl)

export const replay = (id: string): Promise<void> =>
  withRecord(
    id,
    (record) => record.conversation === null ? report(allTexts().requests.noCurl, true) : openRecord(record)
  )
