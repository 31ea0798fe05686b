/**
 * About: versions, and links to the API documents.
 */
import * as Exit from "effect/Exit"
import { useEffect, useState } from "preact/hooks"
import { Facts } from "../parts/Facts.tsx"
import { useWork } from "../parts/Form.tsx"
import { Heading } from "../parts/Heading.tsx"
import { Loading } from "../parts/Loaded.tsx"
import { call, report } from "../state/actions.ts"
import { at, type Reply } from "../state/client.ts"
import { causeText } from "../state/failure.ts"
import { useTexts } from "../state/texts.ts"

type Version = Reply<"admin-version", "version">

export const About = () => {
  const { about: t, common } = useTexts()
  const [version, setVersion] = useState<Version>()
  const [busy, load] = useWork(async (reports: boolean) => {
    const exit = await call((client) => client["admin-version"].version())
    if (Exit.isFailure(exit)) return report(causeText(exit.cause), true)
    const { check_error, has_update, latest_version } = exit.value
    setVersion(exit.value)
    if (!reports) return undefined
    if (check_error !== undefined) return report(t.checkFailed(check_error), true)
    return report(has_update ? t.update(latest_version ?? "") : t.upToDate)
  })
  useEffect(() => load(false), [])
  return (
    <>
      <Heading name={common.pages.about} />
      <div class="card" role="group" aria-label={t.version}>
        <h2>{t.version}</h2>
        {version === undefined ? <Loading /> : (
          <Facts
            facts={[
              [t.running, version.current_version],
              [t.latest, version.latest_version ?? t.unknown],
              [
                t.release,
                version.has_update && version.release_url !== null
                  ? <a key="release" href={version.release_url} rel="noreferrer">{version.release_url}</a>
                  : undefined
              ]
            ]}
          />
        )}
        <div class="actions">
          <button type="button" disabled={busy} onClick={() => load(true)}>{t.check}</button>
        </div>
      </div>
      <div class="card">
        <h2>{t.documents}</h2>
        <p>{t.documentsHint}</p>
        <ul class="links">
          <li>
            <a href={at("/docs")}>{t.docs}</a>
          </li>
          <li>
            <a href={at("/openapi.json")}>{t.openapi}</a>
          </li>
        </ul>
      </div>
    </>
  )
}
