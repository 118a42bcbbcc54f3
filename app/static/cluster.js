// The GPUs of a cluster in the colours of the groups that one of them is in.

/**
 * Along an axis a rank is a digit: neighbours are `stride` ranks apart.
 * @typedef {{ name: string, size: number, stride: number }} Axis
 */

/**
 * A peer along an axis differs in that digit of its rank alone; an expert group is a part of the data axis.
 * @param {Element} cluster
 * @param {Axis[]} axes
 * @param {number} me
 */
export function paint(cluster, axes, me) {
  const digit = (rank, axis) => Math.floor(rank / axis.stride) % axis.size;
  const experts = axes.find((axis) => axis.name === "expert");
  const others = axes.filter((axis) => axis.name !== "expert");
  const used = others.reduce((product, axis) => product * axis.size, 1);
  cluster.querySelectorAll(".gpu").forEach((gpu, rank) => {
    const away = others.filter((axis) => digit(rank, axis) !== digit(me, axis));
    const standing = rank === me ? "me" : rank >= used ? "spare" : away.length === 1 ? `g-${away[0].name}` : "";
    gpu.className = `gpu ${standing}`;
    if (!experts || rank === me || away.length !== 1 || away[0].name !== "data") return;
    const part = (each) => Math.floor(digit(each, away[0]) / experts.size);
    gpu.classList.toggle("ring", part(rank) === part(me));
  });
}
