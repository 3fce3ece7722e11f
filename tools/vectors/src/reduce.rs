//! Principal components: the directions in which vectors differ most.

/// Rounds of the iteration; the directions move by less than what rounding to bytes takes, long before.
const ROUNDS: usize = 60;

/// The same vectors around their middle, in so many dimensions.
pub fn principal(mut vectors: Vec<Vec<f32>>, dimensions: usize) -> Vec<Vec<f32>> {
    centre(&mut vectors);
    let covariance = covariance(&vectors);
    let mut axes = arbitrary(dimensions, covariance.len());
    for _ in 0..ROUNDS {
        for axis in &mut axes {
            *axis = covariance.iter().map(|row| dot(row, axis)).collect();
        }
        orthonormalise(&mut axes);
    }
    let project = |vector: &Vec<f32>| axes.iter().map(|axis| dot(axis, vector)).collect();
    vectors.iter().map(project).collect()
}

fn centre(vectors: &mut [Vec<f32>]) {
    let mut middle = vec![0.0_f64; vectors[0].len()];
    for vector in &*vectors {
        for (sum, part) in middle.iter_mut().zip(vector) {
            *sum += f64::from(*part) / vectors.len() as f64;
        }
    }
    for vector in vectors {
        for (part, middle) in vector.iter_mut().zip(&middle) {
            *part -= *middle as f32;
        }
    }
}

fn covariance(vectors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let size = vectors[0].len();
    let mut covariance = vec![vec![0.0; size]; size];
    for vector in vectors {
        for (row, part) in covariance.iter_mut().zip(vector) {
            for (sum, other) in row.iter_mut().zip(vector) {
                *sum += part * other;
            }
        }
    }
    covariance
}

/// Somewhere to begin, the same in every run.
fn arbitrary(count: usize, size: usize) -> Vec<Vec<f32>> {
    let mut state = 12345_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| (0..size).map(|_| next()).collect()).collect()
}

/// Gram and Schmidt.
fn orthonormalise(axes: &mut [Vec<f32>]) {
    for at in 0..axes.len() {
        let (before, rest) = axes.split_at_mut(at);
        let axis = &mut rest[0];
        for other in before {
            let shared = dot(axis, other);
            for (part, other) in axis.iter_mut().zip(other) {
                *part -= shared * *other;
            }
        }
        let length = dot(axis, axis).sqrt();
        for part in axis {
            *part /= length;
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
