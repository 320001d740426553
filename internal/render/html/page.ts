// The script of a page. The page is complete without it: the script shows controls for what is in the page already. It requests nothing, and it sets text
// only as text. State that a reader may want to send is in the fragment of the address.

/** Line pairs: the class of the cell, then the text and the class of each line. */
type CellData = string[]
type Comparison = [size: number | null, shown: number, factor: CellData, difference: CellData]

interface MatrixData {
  targets: string[]
  rows: { id: string; suite: string; rest: boolean }[]
  values: CellData[][]
  bases: Comparison[][][]
}

interface Row {
  index: number
  element: HTMLTableRowElement
  cells: HTMLTableCellElement[]
  /** The choice that the cells show. */
  drawn: string
}

const all = <E extends Element>(root: ParentNode, selector: string): E[] => Array.from(root.querySelectorAll<E>(selector))

function fill(cell: HTMLElement, data: CellData): void {
  cell.className = data[0]
  const lines: HTMLElement[] = []
  for (let i = 1; i < data.length; i += 2) {
    const line = document.createElement(i === 1 ? "span" : "small")
    line.textContent = data[i]
    line.className = data[i + 1]
    lines.push(line)
  }
  cell.replaceChildren(...lines)
}

function matrix(root: HTMLElement): void {
  const data: MatrixData = JSON.parse(root.querySelector("script")!.textContent!)
  const controls = root.querySelector<HTMLElement>(".controls")!
  const table = root.querySelector("table")!
  const body = table.tBodies[0]
  const status = controls.querySelector<HTMLElement>("[role=status]")!
  const heads = all<HTMLElement>(table.tHead!, "th")
  const original = Array.from(body.rows)
  const rows: Row[] = original
    .filter((element) => element.dataset.row !== undefined)
    .map((element) => ({ index: Number(element.dataset.row), element, cells: all<HTMLTableCellElement>(element, "td"), drawn: "0" }))
  const field = (name: string) => controls.querySelector<HTMLInputElement | HTMLSelectElement>(`[name=${name}]`)
  const boxes = (name: string) => all<HTMLInputElement>(controls, `[name=${name}]`)
  const value = (name: string) => field(name)?.value ?? ""
  const checked = (name: string) => (field(name) as HTMLInputElement | null)?.checked ?? false
  const bases = all<HTMLOptionElement>(controls, "[name=base] option").map((o) => o.value)
  const texts = ["base", "show", "order", "m"]
  let columns = data.targets.map(() => true)

  function order(list: Row[], base: Comparison[][]): Row[] {
    const by = value("order")
    const target = by.startsWith("on ") ? data.targets.indexOf(by.slice(3)) : -1
    const size = (row: Row) =>
      target >= 0
        ? (base[row.index][target][0] ?? -Infinity)
        : Math.max(-1, ...base[row.index].map(([size, shown], c) => (columns[c] && shown ? Math.abs(size ?? 0) : -1)))
    if (by === "name") return list.sort((a, b) => (data.rows[a.index].id < data.rows[b.index].id ? -1 : 1))
    if (by !== "") return list.map((row) => [size(row), row] as const).sort((a, b) => b[0] - a[0] || a[1].index - b[1].index).map(([, row]) => row)
    return list
  }

  function draw(): void {
    const choice = Math.max(0, bases.indexOf(value("base")))
    const base = data.bases[choice]
    const show = value("show")
    const words = value("m").toLowerCase().split(/\s+/)
    const suites = new Set(boxes("s").filter((box) => box.checked).map((box) => box.value))
    const hasSuites = boxes("s").length > 0
    columns = boxes("t").map((box) => box.checked)
    heads.forEach((head, c) => (head.hidden = !columns[c]))
    const key = show === "value" ? show : show + choice
    const visible = rows.filter((row) => {
      const { id, suite, rest } = data.rows[row.index]
      const found = words.every((word) => id.toLowerCase().includes(word))
      const has = (!hasSuites || suites.has(suite)) && found && (!rest || checked("all") || value("m") !== "")
      const isVisible = has && (!checked("shown") || base[row.index].some(([, shown], c) => columns[c] && shown))
      row.element.hidden = !isVisible
      return isVisible
    })
    for (const row of visible) {
      row.cells.forEach((cell, c) => (cell.hidden = !columns[c]))
      if (row.drawn === key) continue
      row.drawn = key
      row.cells.forEach((cell, c) => fill(cell, show === "value" ? data.values[row.index][c] : base[row.index][c][show === "difference" ? 3 : 2]))
    }
    const isOrdered = value("order") !== ""
    table.classList.toggle("ordered", isOrdered)
    body.replaceChildren(...(isOrdered ? order([...rows], base).map((row) => row.element) : original))
    let group: HTMLTableRowElement | null = null
    for (const element of isOrdered ? [] : original) {
      if (element.dataset.row === undefined) {
        group = element
        group.hidden = true
      } else if (group && !element.hidden) group.hidden = false
    }
    status.textContent = `${visible.length} of ${rows.length} metrics, ${columns.filter(Boolean).length} of ${columns.length} targets`
  }

  /** The state in the address, without what is as at first. */
  function write(): void {
    const state = new URLSearchParams()
    for (const name of texts) {
      const isFirst = name === "base" ? value(name) === (bases[0] ?? "") : value(name) === ""
      if (!isFirst) state.set(name, value(name))
    }
    for (const name of ["shown", "all"]) if (checked(name)) state.set(name, "1")
    for (const name of ["t", "s"]) {
      if (!boxes(name).every((box) => box.checked)) for (const box of boxes(name)) if (box.checked) state.append(name, box.value)
    }
    const text = state.toString().replace(/%2F/g, "/").replace(/%40/g, "@")
    history.replaceState(null, "", text === "" ? location.pathname + location.search : "#" + text)
  }

  function read(): boolean {
    const hash = location.hash.slice(1)
    if (!/^(m|base|show|order|shown|all|t|s)=/.test(hash)) return false
    const state = new URLSearchParams(hash)
    for (const name of texts) {
      const input = field(name)
      if (!input) continue
      input.value = state.get(name) ?? (name === "base" ? bases[0] : "")
      if (input instanceof HTMLSelectElement && input.selectedIndex < 0) input.selectedIndex = 0
    }
    for (const name of ["shown", "all"]) {
      const box = field(name) as HTMLInputElement | null
      if (box) box.checked = state.has(name)
    }
    for (const name of ["t", "s"]) {
      const chosen = state.getAll(name)
      for (const box of boxes(name)) box.checked = chosen.length === 0 || chosen.includes(box.value)
    }
    return true
  }

  controls.hidden = false
  controls.addEventListener("input", () => {
    draw()
    write()
  })
  addEventListener("hashchange", () => read() && draw())
  if (read()) root.scrollIntoView()
  draw()
}

all<HTMLElement>(document, ".matrix").forEach(matrix)
