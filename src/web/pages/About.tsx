/**
 * About: what a report about this gateway needs, with one button that copies it, and links to the API documents.
 */
import * as Exit from "effect/Exit"
import { Facts } from "../parts/Facts.tsx"
import { PressButton, useWork } from "../parts/Form.tsx"
import { exactTime } from "../parts/format.ts"
import { Heading, Section } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { copyText, report } from "../state/actions.ts"
import { at, type Reply } from "../state/client.ts"
import { readAgain, readOf } from "../state/reads.ts"
import { useValue } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"
import { upstreamsAtom } from "../state/upstreams.ts"

type Version = Reply<"admin-version", "version">
type Nodes = Reply<"admin-nodes", "nodes">

const versionAtom = readOf("admin-version", "version", {})
const nodesAtom = readOf("admin-nodes", "nodes", {})

type Rows = ReadonlyArray<readonly [name: string, value: string]>

/** What the gateway, its nodes and the browser say of themselves, as texts. */
const useRows = (version: Version, { node, nodes, store }: Nodes): Rows => {
  const { about: t, common } = useTexts()
  const upstreams = useValue(upstreamsAtom)?.upstreams ?? []
  const { commit, date, form, node: runtime, platform } = version.build
  const drivers = [...Map.groupBy(upstreams, ({ driver }) => driver)].map(([driver, { length }]) =>
    `${length} ${driver}`
  )
  return [
    [t.running, version.current_version],
    [
      t.build,
      [commit?.slice(0, 12), date, t.forms[form]].filter((each) => each !== undefined && each !== null).join(", ")
    ],
    [t.runtime, `Node ${runtime}, ${platform}`],
    [t.node, node],
    ...nodes.length > 1
      ? [[t.nodes, nodes.map(({ id, state, version: runs }) => `${id} ${runs} ${state}`).join(", ")] as const]
      : [],
    ...nodes.filter(({ self }) => self).map(({ started_at }) => [t.started, exactTime(started_at)] as const),
    [t.store, store === null ? common.none : `${t.storeStates[store.state]}, ${store.version}`],
    [t.upstreams, drivers.join(", ") || common.none],
    [t.console, navigator.userAgent]
  ]
}

const Installation = ({ nodes, version }: { readonly version: Version; readonly nodes: Nodes }) => {
  const { about: t, common } = useTexts()
  const rows = useRows(version, nodes)
  const text = rows.map(([name, value]) => `${name}: ${value}`).join("\n")
  return (
    <>
      <Facts facts={rows} />
      <p class="hint">{t.reportHint}</p>
      <div class="actions">
        <button type="button" class="primary" onClick={() => void copyText(text, common.copied(t.report))}>
          {t.copyAll}
        </button>
      </div>
    </>
  )
}

const Update = ({ busy, onCheck, version }: {
  readonly version: Version
  readonly busy: boolean
  readonly onCheck: () => void
}) => {
  const t = useTexts().about
  return (
    <>
      <Facts
        facts={[
          [t.latest, version.latest_version ?? t.unknown],
          [
            t.release,
            version.has_update && version.release_url !== null
              ? <a key="release" href={version.release_url} rel="noreferrer">{version.release_url}</a>
              : undefined
          ]
        ]}
      />
      <div class="actions">
        <PressButton disabled={busy} onClick={onCheck}>{t.check}</PressButton>
      </div>
    </>
  )
}

export const About = () => {
  const { about: t, common } = useTexts()
  const [busy, check] = useWork(async () => {
    const exit = await readAgain(versionAtom)
    // What failed stands where it is shown.
    if (Exit.isFailure(exit)) return undefined
    const { check_error, has_update, latest_version } = exit.value
    if (check_error !== undefined) return report(t.checkFailed(check_error), true)
    return report(has_update ? t.update(latest_version ?? "") : t.upToDate)
  })
  return (
    <>
      <Heading name={common.pages.about} />
      <div class="columns">
        <Section class="card" name={t.report}>
          <Loaded atom={versionAtom}>
            {(version) => (
              <Loaded atom={nodesAtom}>{(nodes) => <Installation version={version} nodes={nodes} />}</Loaded>
            )}
          </Loaded>
        </Section>
        <div class="stack wide-gap">
          <Section class="card" name={t.version}>
            <Loaded atom={versionAtom}>
              {(version) => <Update version={version} busy={busy} onCheck={() => check()} />}
            </Loaded>
          </Section>
          <Section class="card" name={t.documents}>
            <p>{t.documentsHint}</p>
            <ul class="links">
              <li>
                <a href={at("/docs")}>{t.docs}</a>
              </li>
              <li>
                <a href={at("/openapi.json")}>{t.openapi}</a>
              </li>
            </ul>
          </Section>
        </div>
      </div>
    </>
  )
}
