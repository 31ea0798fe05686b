/**
 * The record of one request, kept up to date while it is shown.
 */
import { useEffect, useState } from "preact/hooks"
import { failureText } from "../../state/failure.ts"
import { onRequests, onReset } from "../../state/live.ts"
import { type Failed, useRetry } from "../../state/reads.ts"
import { readRequest, type RequestRecord } from "../../state/requests.ts"

/** The record. Reloaded on each event about it, and every second while it is open, because frames cause no events. */
export const useRecord = (id: string) => {
  const [record, setRecord] = useState<RequestRecord>()
  const [failure, setFailure] = useState<Failed>()
  const [gone, setGone] = useState(false)
  const [tries, setTries] = useState(0)
  useEffect(() => {
    const ending = new AbortController()
    let reading = false
    let again = false
    let timer: ReturnType<typeof setTimeout> | undefined
    let known: string | undefined
    const read = async () => {
      reading = true
      again = false
      try {
        const next = await readRequest(id, ending.signal)
        setGone(next === undefined)
        if (next !== undefined) {
          known = next.id
          again ||= next.outcome === "open"
          setRecord(next)
          setFailure(undefined)
        }
      } catch (reason) {
        if (!ending.signal.aborted) setFailure({ text: failureText(reason) })
      }
      timer = setTimeout(() => {
        reading = false
        if (again) void read()
      }, 1_000)
    }
    const prompt = () => {
      if (reading) again = true
      else void read()
    }
    const stop = onRequests((items) => {
      if (items.some((item) => item.id === (known ?? id) || item.request_id === id)) prompt()
    })
    const stopReset = onReset(prompt)
    prompt()
    return () => {
      ending.abort()
      clearTimeout(timer)
      stop()
      stopReset()
    }
  }, [id, tries])
  const retry = () => setTries((count) => count + 1)
  useRetry(failure, retry)
  return { record, failure: failure?.text, gone, retry }
}
