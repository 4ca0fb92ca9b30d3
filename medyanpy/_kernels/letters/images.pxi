# What a wall adds to the mobilities of spheres: the flow of their images behind it. Included by hydrodynamics.pyx.
#
# Of a force F at height h above the plane z = 0 the flow is that of open space plus, with R from the image of the
# source to where it is felt, phi = 1/R, J = 1/R + RR/R^3 and F* = F mirrored (Blake 1971),
#     V = -J F - 2 (F*.grad) [ h^2 grad phi + h J e_z ].
# Averaged over the spheres that feel it (radius a) and act (radius b), and so for torques; all in units of 1/8 pi eta:
#     v  = -J F + (a^2 + b^2)/3 grad grad phi F - 2 (F*.grad) { grad [(h^2 + b^2/3) phi + (2/3) b^2 h phi_z]
#          + h [J e_z - (a^2 + b^2)/3 grad phi_z] + b^2/3 [J_z e_z - a^2/3 grad phi_zz] }
#     w  = R x F / R^3 - 2 [h D2 + b^2/3 D3] x e_z,      D2 = (F*.grad) grad phi,  D3 = (F*.grad) grad phi_z
# and by the same flow turned round, torques T move, with c = e_z x T, R and h of the one that is moved, b = its radius:
#     v' = T x R / R^3 - 2 [h D2(c) + b^2/3 D3(c)]*
#     w' = -T phi_zz - (grad (T.grad phi))* / 2 - ((T x e_z).grad) (grad phi x e_z)
# Derived in docs/theory/hydrodynamic_interactions.md. Spheres that do not overlap the wall do not overlap an image.


cdef inline void _add_images(Spheres* c, Targets* b, int loads) noexcept nogil:
    cdef double x, y, z, h, a2, b2, sum2, i1, i2, i3, i5, i7, i9, s, along, fx, fy, fz, tx, ty, tz, bx, by
    cdef double near, far, p2, px, py, pz, g, w, m
    cdef double sx, sy, sz, sa
    cdef Py_ssize_t j
    cdef bint turn
    cdef int lane, load
    for j in range(c.n):
        sx, sy, sz = c.x[j], c.x[c.stride + j], c.x[2 * c.stride + j]
        sa = c.radius[j]
        turn = j < c.n_turning
        for load in range(loads):
            fx = c.f[(6 * load + 0) * c.stride + j]
            fy = c.f[(6 * load + 1) * c.stride + j]
            fz = c.f[(6 * load + 2) * c.stride + j]
            for lane in range(TARGETS):
                x = b.x[0][lane] - sx
                y = b.x[1][lane] - sy
                z = b.x[2][lane] + sz
                a2 = b.a[lane] * b.a[lane]
                b2 = sa * sa
                sum2 = (a2 + b2) * (1.0 / 3.0)
                i1 = inverse_root(x * x + y * y + z * z)
                i2 = i1 * i1
                i3 = i1 * i2
                i5 = i3 * i2
                i7 = i5 * i2
                i9 = i7 * i2
                h = sz
                # -J F + (a^2 + b^2)/3 grad grad phi F
                along = (-i3 + 3.0 * sum2 * i5) * (x * fx + y * fy + z * fz)
                near = -i1 - sum2 * i3
                px = near * fx + along * x
                py = near * fy + along * y
                pz = near * fz + along * z
                # The rest is a sum of R, F* and e_z: F* = (fx, fy, -fz), s = F*.R.
                s = x * fx + y * fy - z * fz
                # grad phi: h^2 + b^2/3
                g = h * h + b2 * (1.0 / 3.0)
                w = 3.0 * g * i5 * s
                m = -g * i3
                far = 0.0
                # grad phi_z, by what is left of (2/3) b^2 h - (a^2 + b^2)/3 h
                g = h * (2.0 / 3.0 * b2 - sum2)
                w += g * (-15.0 * i7 * s * z - 3.0 * i5 * fz)
                m += g * 3.0 * i5 * z
                far += g * 3.0 * i5 * s
                # h J e_z
                w += h * (-i3 * fz - 3.0 * i5 * z * s)
                m += h * i3 * z
                far -= h * i3 * s
                # b^2/3 J_z e_z
                g = b2 * (1.0 / 3.0)
                w += g * (6.0 * i5 * fz * z - 3.0 * i5 * s + 15.0 * i7 * z * z * s)
                m += g * (i3 - 3.0 * i5 * z * z)
                # -a^2 b^2/9 grad phi_zz
                g = -a2 * b2 * (1.0 / 9.0)
                w += g * (105.0 * i9 * s * z * z + 30.0 * i7 * fz * z - 15.0 * i7 * s)
                m += g * (3.0 * i5 - 15.0 * i7 * z * z)
                far += g * (-30.0 * i7 * s * z - 6.0 * i5 * fz)
                b.u[load][0][lane] += px - 2.0 * (w * x + m * fx)
                b.u[load][1][lane] += py - 2.0 * (w * y + m * fy)
                b.u[load][2][lane] += pz - 2.0 * (w * z - m * fz + far)
                # w by F: R x F / R^3 - 2 [h D2 + b^2/3 D3] x e_z
                g = b2 * (1.0 / 3.0)
                along = h * 3.0 * i5 * s + g * (-15.0 * i7 * s * z - 3.0 * i5 * fz)
                near = -h * i3 + g * 3.0 * i5 * z
                bx = along * x + near * fx
                by = along * y + near * fy
                b.u[load][3][lane] += i3 * (y * fz - z * fy) - 2.0 * by
                b.u[load][4][lane] += i3 * (z * fx - x * fz) + 2.0 * bx
                b.u[load][5][lane] += i3 * (x * fy - y * fx)
            if turn:
                tx = c.f[(6 * load + 3) * c.stride + j]
                ty = c.f[(6 * load + 4) * c.stride + j]
                tz = c.f[(6 * load + 5) * c.stride + j]
                for lane in range(TARGETS):
                    x = b.x[0][lane] - sx
                    y = b.x[1][lane] - sy
                    z = b.x[2][lane] + sz
                    i1 = inverse_root(x * x + y * y + z * z)
                    i2 = i1 * i1
                    i3 = i1 * i2
                    i5 = i3 * i2
                    i7 = i5 * i2
                    h = b.x[2][lane]
                    g = b.a[lane] * b.a[lane] * (1.0 / 3.0)
                    # v' by T, from where the source is to the image of the target: R = (-x, -y, z), c = (-ty, tx, 0)
                    s = x * ty - y * tx
                    along = h * 3.0 * i5 * s - 15.0 * g * i7 * s * z
                    near = -h * i3 + g * 3.0 * i5 * z
                    far = g * 3.0 * i5 * s
                    b.u[load][0][lane] += i3 * (ty * z + tz * y) - 2.0 * (-along * x - near * ty)
                    b.u[load][1][lane] += i3 * (-tz * x - tx * z) - 2.0 * (-along * y + near * tx)
                    b.u[load][2][lane] += i3 * (ty * x - tx * y) + 2.0 * (along * z + far)
                    # w' by T
                    s = x * tx + y * ty + z * tz
                    m = -(3.0 * i5 * z * z - i3)
                    # (grad (T.grad phi))*: (3 R s / R^5 - T / R^3)*
                    p2 = 3.0 * i5 * s
                    px = p2 * x - i3 * tx
                    py = p2 * y - i3 * ty
                    pz = -(p2 * z - i3 * tz)
                    # (A.grad) grad phi with A = T x e_z = (ty, -tx, 0), crossed with e_z: (., ., .) x e_z = (y, -x, 0)
                    w = 3.0 * i5 * (x * ty - y * tx)
                    bx = w * x - i3 * ty
                    by = w * y + i3 * tx
                    b.u[load][3][lane] += m * tx - 0.5 * px - by
                    b.u[load][4][lane] += m * ty - 0.5 * py + bx
                    b.u[load][5][lane] += m * tz - 0.5 * pz
